//! Puts values where placeholders stand, for the hosts that they are for.

use crate::terminator::MAX_HEAD_BYTES;
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

    /// Puts values in the head of a request, which was looked at.
    ///
    /// With them in it, a head may be longer than [`MAX_HEAD_BYTES`] by each of them, once: placeholders are
    /// short, values may be long, and whoever is inside may write the first as often as there is room.
    pub(crate) fn work(&self, host: &str, head: &mut Parts) -> Result<()> {
        let mut room = MAX_HEAD_BYTES.saturating_sub(length(head));
        for granted in self.grants.iter().filter(|granted| granted.grant.is_for(host)) {
            room += granted.longest();
            match &granted.grant.place {
                GrantPlace::Header { name, scheme } => {
                    granted.header(head, (name, *scheme), &mut room)?;
                }
                GrantPlace::Query(part) => granted.query(head, part, &mut room)?,
            }
        }
        Ok(())
    }

    /// What is in the head of a request that must not go to this host.
    pub(crate) fn look(&self, host: &str, head: &Parts) -> Option<Sighting> {
        let texts = head
            .headers
            .iter()
            .flat_map(|(name, value)| [name.as_str().as_bytes(), value.as_bytes()]);
        let line = [head.method.as_str().as_bytes(), head.uri.path().as_bytes()];
        let query = head.uri.query().unwrap_or_default().as_bytes();
        let authority = head.uri.authority().map_or("", |authority| authority.as_str()).as_bytes();
        texts.chain(line).chain([query, authority]).find_map(|text| {
            let mut watch = self.watch(host);
            watch.look(text).or_else(|| watch.finish())
        })
    }
}

/// How long a head is, as it goes over the line.
pub(crate) fn length(head: &Parts) -> usize {
    // A header has a colon, a space and a line end, too.
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    let target = head.uri.path_and_query().map_or(0, |target| target.as_str().len());
    headers.sum::<usize>() + target
}

impl Granted {
    /// How long the value is at most, where it stands.
    fn longest(&self) -> usize {
        // Each byte may be escaped by three.
        3 * self.value.expose().len()
    }

    /// Takes what so many more values need from the room that is left, before they are written.
    fn take(&self, room: &mut usize, places: usize) -> Result<()> {
        let left = places.checked_mul(self.longest()).and_then(|needed| room.checked_sub(needed));
        *room = left.ok_or_else(|| {
            let what = format!("secret {} is to stand in too many places", self.grant.name);
            Error::new(ErrorKind::Usage, what)
        })?;
        Ok(())
    }

    fn header(
        &self,
        head: &mut Parts,
        (name, scheme): (&str, Option<BasicOrBearer>),
        room: &mut usize,
    ) -> Result<()> {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| self.unfit())?;
        let header::Entry::Occupied(mut values) = head.headers.entry(name) else { return Ok(()) };
        for value in values.iter_mut() {
            if let Some(bytes) = self.in_header(value.as_bytes(), scheme, room)? {
                *value = HeaderValue::from_bytes(&bytes).map_err(|_| self.unfit())?;
            }
            // It prints as nothing from now on.
            value.set_sensitive(true);
        }
        Ok(())
    }

    /// The header's value with the secret in it; `None` where the placeholder does not stand there.
    fn in_header(
        &self,
        value: &[u8],
        scheme: Option<BasicOrBearer>,
        room: &mut usize,
    ) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let is_bearer = strip_word(value, b"bearer").is_some();
        let may_be_plain = match scheme {
            Some(BasicOrBearer::Bearer) => is_bearer,
            Some(BasicOrBearer::Basic) => false,
            None => true,
        };
        if may_be_plain && let Some(replaced) = self.replace(value, room)? {
            return Ok(Some(replaced));
        }
        match strip_word(value, b"basic") {
            Some(encoded) if scheme != Some(BasicOrBearer::Bearer) => self.in_basic(encoded, room),
            Some(_) | None => Ok(None),
        }
    }

    fn in_basic(&self, encoded: &[u8], room: &mut usize) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let Ok(decoded) = STANDARD.decode(encoded.trim_ascii()).map(Zeroizing::new) else {
            return Ok(None);
        };
        let Some(replaced) = self.replace(&decoded, room)? else { return Ok(None) };
        let encoded = Zeroizing::new(STANDARD.encode(&*replaced));
        Ok(Some(Zeroizing::new([b"Basic ", encoded.as_bytes()].concat())))
    }

    fn query(&self, head: &mut Parts, part: &str, room: &mut usize) -> Result<()> {
        let Some(query) = head.uri.query() else { return Ok(()) };
        let is_its = |piece: &&str| {
            piece.split_once('=').is_some_and(|(name, is)| name == part && is == self.placeholder)
        };
        let places = query.split('&').filter(is_its).count();
        self.take(room, places)?;
        let longest = head.uri.path().len() + 1 + query.len() + places * self.longest();
        let mut new = Zeroizing::new(Vec::with_capacity(longest));
        new.extend_from_slice(head.uri.path().as_bytes());
        for (at, piece) in query.split('&').enumerate() {
            new.push(if at == 0 { b'?' } else { b'&' });
            if is_its(&piece) {
                new.extend_from_slice(part.as_bytes());
                new.push(b'=');
                escape(self.value.expose_line(), &mut new);
            } else {
                new.extend_from_slice(piece.as_bytes());
            }
        }
        let path = PathAndQuery::try_from(new.as_slice()).map_err(|_| self.unfit())?;
        let mut uri = std::mem::take(&mut head.uri).into_parts();
        uri.path_and_query = Some(path);
        head.uri = http::Uri::from_parts(uri).map_err(|_| self.unfit())?;
        Ok(())
    }

    /// Every place of the placeholder; `None` where it has none.
    fn replace(&self, bytes: &[u8], room: &mut usize) -> Result<Option<Zeroizing<Vec<u8>>>> {
        let wanted = self.placeholder.as_bytes();
        let windows = bytes.windows(wanted.len().max(1)).enumerate();
        let places: Vec<_> =
            windows.filter(|(_, part)| *part == wanted).map(|(at, _)| at).collect();
        if places.is_empty() {
            return Ok(None);
        }
        self.take(room, places.len())?;
        let value = self.value.expose_line();
        // As much as it takes: what grew would leave copies behind.
        let longest = bytes.len() + places.len() * value.len();
        let mut out = Zeroizing::new(Vec::with_capacity(longest));
        let mut done = 0;
        for place in places {
            out.extend_from_slice(bytes.get(done..place).unwrap_or_default());
            out.extend_from_slice(value);
            done = place + wanted.len();
        }
        out.extend_from_slice(bytes.get(done..).unwrap_or_default());
        Ok(Some(out))
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
        let injector = injector(&[grant]);
        assert_eq!(injector.look("a.example", &head), None);
        injector.work("a.example", &mut head).unwrap();
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
        injector(&["T@a.example:query=k"]).work("a.example", &mut head).unwrap();
        let expected = format!("/p?x=1&k=r%2Fal%20t%26ken&k2={HELD}&k=x{HELD}");
        assert_eq!(head.uri.to_string(), expected);
    }

    #[test]
    fn a_placeholder_toward_another_host_is_seen_wherever_it_is_in_a_head() {
        let injector = injector(&["T@a.example", "T@c.example"]);
        let basic = format!("Basic {}", STANDARD.encode(format!("u:{HELD}")));
        for (uri, name, value) in [
            ("/", "authorization", format!("Bearer {HELD}")),
            ("/", "x-other", basic),
            (&*format!("/{HELD}"), "x", "y".to_owned()),
            (&*format!("/?q={HELD}"), "x", "y".to_owned()),
            (&*format!("https://{HELD}@b.example/"), "x", "y".to_owned()),
        ] {
            let seen = injector.look("b.example", &head(uri, &[(name, &value)])).unwrap();
            assert_eq!((seen.secret.unwrap().as_str(), &*seen.host), ("T", "b.example"));
        }
        // The control: to its own host it goes.
        let own = head("/", &[("authorization", &format!("Bearer {HELD}"))]);
        assert_eq!(injector.look("c.example", &own), None);
    }

    #[test]
    fn a_canary_goes_nowhere() {
        let head = head("/", &[("x", "a canary-4711")]);
        let seen = injector(&["T@a.example"]).look("a.example", &head).unwrap();
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
    fn values_are_put_in_as_often_as_a_head_has_room() {
        let mut injector = Injector::default();
        let value = SecretValue::new(vec![b'v'; 20_000]).unwrap();
        for grant in ["T@a.example", "T@a.example:query=k"] {
            injector.grant(grant.parse().unwrap(), HELD, value.clone()).unwrap();
        }
        let put_in = |times: usize| {
            let header = HELD.repeat(times);
            let mut head = head("/", &[("authorization", &header)]);
            let done = injector.work("a.example", &mut head).map(|()| length(&head));
            done.map_err(|error| error.message)
        };
        assert!(put_in(1).unwrap() > 20_000);
        let most = put_in(2).unwrap();
        assert!(most <= MAX_HEAD_BYTES + 3 * 20_000, "{most}");
        let refused = put_in(3).unwrap_err();
        assert_eq!(refused, "secret T is to stand in too many places");
        let query = |times: usize| {
            let mut head = head(&format!("/?{}", format!("k={HELD}&").repeat(times)), &[]);
            injector.work("a.example", &mut head).map(|()| length(&head))
        };
        assert!(query(1).unwrap() > 20_000);
        assert!(query(900).is_err());
    }

    #[test]
    fn placeholders_are_not_alike() {
        let (one, other) = (placeholder().unwrap(), placeholder().unwrap());
        assert!(one != other && one.len() == MARK.len() + 2 * RANDOM_BYTES);
    }
}
