//! Puts values where placeholders stand, for the hosts that they are for.

use crate::watch::{Sighting, Watch, Word};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cofferdam_core::secret::{BasicOrBearer, GrantPlace, SecretGrant, SecretValue};
use cofferdam_core::{Error, ErrorKind, Result, hexadecimal};
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::uri::PathAndQuery;
use ring::rand::{SecureRandom, SystemRandom};
use zeroize::Zeroizing;

/// Begins every placeholder, so that people know one when they see it.
const MARK: &str = "cofferdam-placeholder-";
/// How many random bytes tell one from another.
const RANDOM_BYTES: usize = 16;

/// A new placeholder: letters, digits and hyphens, and nothing that could be guessed.
pub fn placeholder() -> Result<String> {
    let mut random = [0; RANDOM_BYTES];
    let filled = SystemRandom::new().fill(&mut random);
    filled.map_err(|_| Error::new(ErrorKind::Io, "get random bytes"))?;
    Ok(format!("{MARK}{}", hexadecimal(random)))
}

/// Which placeholder stands for which value, toward which host.
#[derive(Debug, Default)]
pub struct Injector {
    grants: Vec<Granted>,
    canaries: Vec<Word>,
}

#[derive(Debug)]
struct Granted {
    grant: SecretGrant,
    placeholder: String,
    value: SecretValue,
    word: Word,
}

impl Injector {
    /// Adds a secret that is granted. Two grants of one secret have one placeholder.
    ///
    /// Fails where the value cannot stand in a request.
    pub fn grant(
        &mut self,
        grant: SecretGrant,
        placeholder: &str,
        value: SecretValue,
    ) -> Result<()> {
        if HeaderValue::from_bytes(value.expose_line()).is_err() {
            let what = format!("secret {} has several lines or control characters", grant.name);
            return Err(Error::new(ErrorKind::Usage, what)
                .hint("Give it as a file, with --secret-file: it cannot stand in a request."));
        }
        let word = Word::new(Some(grant.name.clone()), placeholder)?;
        self.grants.push(Granted { grant, placeholder: placeholder.to_owned(), value, word });
        Ok(())
    }

    /// Adds a word that must go nowhere.
    pub fn canary(&mut self, text: &str) -> Result<()> {
        self.canaries.push(Word::new(None, text)?);
        Ok(())
    }

    /// Whether connections to this host are to be terminated.
    pub fn is_for(&self, host: &str) -> bool {
        self.grants.iter().any(|granted| granted.grant.is_for(host))
    }

    /// Looks for what must not go to this host: canaries, and placeholders that are not for it.
    pub fn watch(&self, host: &str) -> Watch {
        let is_own = |word: &Word| {
            let same = |granted: &&Granted| granted.grant.is_for(host);
            self.grants.iter().filter(same).any(|own| own.word.secret == word.secret)
        };
        let others = self.grants.iter().map(|granted| &granted.word).filter(|word| !is_own(word));
        let words: Vec<Word> = others.chain(&self.canaries).cloned().collect();
        Watch::new(&words, host)
    }

    /// Looks at the head of a request, and puts values in. Nothing is put in where it tells something.
    pub(crate) fn work(&self, host: &str, head: &mut Parts) -> Result<Option<Sighting>> {
        if let Some(sighting) = self.look(host, head) {
            return Ok(Some(sighting));
        }
        for granted in self.grants.iter().filter(|granted| granted.grant.is_for(host)) {
            match &granted.grant.place {
                GrantPlace::Header { name, scheme } => granted.header(head, name, *scheme)?,
                GrantPlace::Query(part) => granted.query(head, part)?,
            }
        }
        Ok(None)
    }

    fn look(&self, host: &str, head: &Parts) -> Option<Sighting> {
        let texts = head
            .headers
            .iter()
            .flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        let line = [head.method.as_str().as_bytes(), head.uri.path().as_bytes()];
        let query = head.uri.query().unwrap_or_default().as_bytes();
        texts.chain(line).chain([query]).find_map(|text| {
            let mut watch = self.watch(host);
            watch.look(text).or_else(|| watch.finish())
        })
    }
}

impl Granted {
    fn header(&self, head: &mut Parts, name: &str, scheme: Option<BasicOrBearer>) -> Result<()> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| self.unfit())?;
        let header::Entry::Occupied(mut values) = head.headers.entry(name) else { return Ok(()) };
        for value in values.iter_mut() {
            if let Some(bytes) = self.in_header(value.as_bytes(), scheme) {
                *value = HeaderValue::from_bytes(&bytes).map_err(|_| self.unfit())?;
            }
            // It prints as nothing from now on.
            value.set_sensitive(true);
        }
        Ok(())
    }

    /// The header's value with the secret in it; `None` where the placeholder does not stand there.
    fn in_header(&self, value: &[u8], scheme: Option<BasicOrBearer>) -> Option<Zeroizing<Vec<u8>>> {
        let basic = strip_word(value, b"basic");
        match scheme {
            Some(BasicOrBearer::Bearer) => {
                strip_word(value, b"bearer")?;
                self.replace(value)
            }
            Some(BasicOrBearer::Basic) => self.in_basic(basic?),
            None => self.replace(value).or_else(|| self.in_basic(basic?)),
        }
    }

    fn in_basic(&self, encoded: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let decoded = Zeroizing::new(STANDARD.decode(encoded.trim_ascii()).ok()?);
        let replaced = self.replace(&decoded)?;
        let encoded = Zeroizing::new(STANDARD.encode(&*replaced));
        Some(Zeroizing::new([b"Basic ", encoded.as_bytes()].concat()))
    }

    fn query(&self, head: &mut Parts, part: &str) -> Result<()> {
        let Some(query) = head.uri.query() else { return Ok(()) };
        let mut new =
            Zeroizing::new(Vec::with_capacity(query.len() + 3 * self.value.expose().len()));
        new.extend_from_slice(head.uri.path().as_bytes());
        for (at, piece) in query.split('&').enumerate() {
            new.push(if at == 0 { b'?' } else { b'&' });
            match piece.split_once('=') {
                Some((name, value)) if name == part && value == self.placeholder => {
                    new.extend_from_slice(name.as_bytes());
                    new.push(b'=');
                    escape(self.value.expose_line(), &mut new);
                }
                Some(_) | None => new.extend_from_slice(piece.as_bytes()),
            }
        }
        let path = PathAndQuery::try_from(new.as_slice()).map_err(|_| self.unfit())?;
        let mut uri = std::mem::take(&mut head.uri).into_parts();
        uri.path_and_query = Some(path);
        head.uri = http::Uri::from_parts(uri).map_err(|_| self.unfit())?;
        Ok(())
    }

    /// Every place of the placeholder.
    fn replace(&self, bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let wanted = self.placeholder.as_bytes();
        let room = bytes.len() / wanted.len().max(1) * self.value.expose().len() + bytes.len();
        let mut out = Zeroizing::new(Vec::with_capacity(room));
        let (mut rest, mut found) = (bytes, false);
        while let Some((first, after)) = rest.split_first() {
            if let Some(behind) = rest.strip_prefix(wanted) {
                out.extend_from_slice(self.value.expose_line());
                (rest, found) = (behind, true);
            } else {
                out.push(*first);
                rest = after;
            }
        }
        found.then_some(out)
    }

    fn unfit(&self) -> Error {
        let what = format!("secret {} cannot stand where it is granted", self.grant.name);
        Error::new(ErrorKind::Usage, what)
    }
}

/// What follows a word and a space.
fn strip_word<'v>(value: &'v [u8], word: &[u8]) -> Option<&'v [u8]> {
    let (first, rest) = value.split_at_checked(word.len())?;
    let is_it = first.eq_ignore_ascii_case(word);
    rest.strip_prefix(b" ").filter(|_| is_it)
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
            out.push(*byte);
        } else {
            out.push(b'%');
            out.extend(DIGITS.get(usize::from(byte >> 4)));
            out.extend(DIGITS.get(usize::from(byte & 15)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: &str = "cofferdam-placeholder-0123456789abcdef";

    fn injector(grants: &[&str]) -> Injector {
        let mut injector = Injector::default();
        for grant in grants {
            let value = SecretValue::new(b"r/al t&ken\n".to_vec()).unwrap();
            injector.grant(grant.parse().unwrap(), HELD, value).unwrap();
        }
        injector.canary("canary-4711").unwrap();
        injector
    }

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    /// What is sent to `a.example` under one grant.
    fn sent(grant: &str, name: &str, value: &str) -> String {
        let mut head = head("/", &[(name, value)]);
        assert_eq!(injector(&[grant]).work("a.example", &mut head).unwrap(), None);
        String::from_utf8(head.headers[name].as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn the_value_stands_where_the_grant_says_and_nowhere_else() {
        let bearer = format!("Bearer {HELD}");
        let basic = format!("basic {}", STANDARD.encode(format!("user:{HELD}")));
        let real = format!("Basic {}", STANDARD.encode("user:r/al t&ken"));
        assert_eq!(sent("T@a.example", "authorization", &bearer), "Bearer r/al t&ken");
        assert_eq!(sent("T@a.example", "authorization", &basic), real);
        assert_eq!(sent("T@a.example:scheme=basic", "authorization", &basic), real);
        assert_eq!(sent("T@a.example:scheme=basic", "authorization", &bearer), bearer);
        assert_eq!(sent("T@a.example:scheme=Bearer", "authorization", &basic), basic);
        assert_eq!(sent("T@a.example:header=x-key", "x-key", HELD), "r/al t&ken");
        assert_eq!(sent("T@a.example:header=x-key", "authorization", &bearer), bearer);
        assert_eq!(sent("T@a.example:query=k", "authorization", &bearer), bearer);
        assert_eq!(sent("T@b.example", "x-other", "nothing"), "nothing");
    }

    #[test]
    fn a_part_of_the_query_is_replaced_as_a_whole_and_escaped() {
        let uri = format!("/p?x=1&k={HELD}&k2={HELD}&k=x{HELD}");
        let mut head = head(&uri, &[]);
        assert_eq!(injector(&["T@a.example:query=k"]).work("a.example", &mut head).unwrap(), None);
        let expected = format!("/p?x=1&k=r%2Fal%20t%26ken&k2={HELD}&k=x{HELD}");
        assert_eq!(head.uri.to_string(), expected);
    }

    #[test]
    fn a_placeholder_toward_another_host_is_told_and_nothing_is_put_in() {
        let injector = injector(&["T@a.example", "T@c.example"]);
        let basic = format!("Basic {}", STANDARD.encode(format!("u:{HELD}")));
        for (uri, name, value) in [
            ("/", "authorization", format!("Bearer {HELD}")),
            ("/", "x-other", basic),
            (&*format!("/{HELD}"), "x", "y".to_owned()),
            (&*format!("/?q={HELD}"), "x", "y".to_owned()),
        ] {
            let mut head = head(uri, &[(name, &value)]);
            let seen = injector.work("b.example", &mut head).unwrap().unwrap();
            assert_eq!((seen.secret.unwrap().as_str(), &*seen.host), ("T", "b.example"));
            assert_eq!(head.headers[name], value);
        }
        // The control: to its own host it goes.
        let mut own = head("/", &[("authorization", &format!("Bearer {HELD}"))]);
        assert_eq!(injector.work("c.example", &mut own).unwrap(), None);
    }

    #[test]
    fn a_canary_goes_nowhere() {
        let mut head = head("/", &[("x", "a canary-4711")]);
        let seen = injector(&["T@a.example"]).work("a.example", &mut head).unwrap().unwrap();
        assert_eq!(seen.secret, None);
        let mut watch = injector(&[]).watch("a.example");
        assert_eq!(watch.look(b"cana"), None);
        assert_eq!(watch.look(b"ry-47"), None);
        assert!(watch.look(b"11").is_some());
    }

    #[test]
    fn a_value_that_cannot_stand_in_a_request_is_refused() {
        let value = SecretValue::new(b"two\nlines".to_vec()).unwrap();
        let error = Injector::default().grant("T@a.example".parse().unwrap(), HELD, value);
        assert!(error.unwrap_err().hint.unwrap().contains("--secret-file"));
    }

    #[test]
    fn placeholders_are_not_alike() {
        let (one, other) = (placeholder().unwrap(), placeholder().unwrap());
        assert!(one != other && one.len() == MARK.len() + 2 * RANDOM_BYTES);
    }
}
