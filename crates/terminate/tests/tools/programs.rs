//! Programs of this system, each as it is configured by the variables that a view has.

use crate::stage::{HOST, LONG, Set, Stage, VALUE, text};

/// Says so where a program is not here.
fn is_here(program: &str) -> bool {
    let found = ["/usr/local/bin", "/usr/bin", "/bin"]
        .iter()
        .any(|directory| std::path::Path::new(directory).join(program).exists());
    if !found {
        println!("skipped: {program}: it is not installed");
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_sends_a_placeholder_and_the_host_gets_the_value() {
    let stage = Stage::new("curl").await;
    let header = format!("Authorization: Bearer {}", stage.placeholder);
    let said = stage.curl(&["-H", &header, &stage.url("/a?b=c")]).await;
    assert!(text(&said).ends_with("hello\n") && said.status.success(), "{}", text(&said));
    assert_eq!(stage.header("authorization"), Some(format!("Bearer {VALUE}")));
    let asked = stage.asked.lock().unwrap()[0].0.clone();
    assert_eq!(asked.uri.to_string(), "/a?b=c");
    assert!(!text(&said).contains(VALUE) && stage.heard.alarms().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminator_the_host_gets_the_placeholder() {
    let stage = Stage::new("control").await;
    let port = stage.outside.port();
    let ca = stage.file("public.pem", stage.public.pem().as_bytes());
    let resolve = format!("{HOST}:{port}:127.0.0.1");
    let url = format!("https://{HOST}:{port}/");
    let header = format!("Authorization: Bearer {}", stage.placeholder);
    let words = ["curl", "-sS", "--cacert", &ca, "--resolve", &resolve, "-H", &header, &url];
    let said = stage.program(&words).output().await.unwrap();
    assert!(said.status.success(), "{}", text(&said));
    assert_eq!(stage.header("authorization"), Some(format!("Bearer {}", stage.placeholder)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_password_are_sent_as_curl_does() {
    let stage =
        Stage::set("basic", Set { grant: format!("T@{HOST}:scheme=basic"), ..Set::default() })
            .await;
    let said = stage.curl(&["-u", &format!("me:{}", stage.placeholder), &stage.url("/")]).await;
    assert!(said.status.success(), "{}", text(&said));
    // me:the/real+token
    assert_eq!(stage.header("authorization").as_deref(), Some("Basic bWU6dGhlL3JlYWwrdG9rZW4="));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_pass_in_both_directions_as_they_are() {
    let stage = Stage::new("bodies").await;
    let body: Vec<u8> = (0..LONG).map(|n| u8::try_from(n * n % 251).unwrap()).collect();
    let file = stage.file("body", &body);
    let said = stage.curl(&["-T", &file, &stage.url("/long")]).await;
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert!(said.stdout.ends_with(&[b'x'; 100]) && said.stdout.len() > LONG);
    assert!(stage.asked.lock().unwrap()[0].1 == body);
    // Of unknown length, too.
    let chunked = ["-H", "Transfer-Encoding: chunked", "-T", &file, &stage.url("/")];
    assert!(stage.curl(&chunked).await.status.success());
    assert!(stage.asked.lock().unwrap()[1].1 == body);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_many_requests() {
    let stage = Stage::new("many").await;
    let urls: Vec<String> = (0..20).map(|n| stage.url(&format!("/{n}"))).collect();
    let words: Vec<&str> = ["-v"].into_iter().chain(urls.iter().map(String::as_str)).collect();
    let said = stage.curl(&words).await;
    assert_eq!(stage.count(), 20);
    assert!(text(&said).matches("Re-using existing connection").count() >= 19, "{}", text(&said));
}

#[tokio::test(flavor = "multi_thread")]
async fn openssl_verifies_the_certificate_by_this_session_alone() {
    if !is_here("openssl") {
        return;
    }
    let stage = Stage::new("openssl").await;
    let connect = format!("127.0.0.1:{}", stage.front.port());
    let own = stage.file("own.pem", stage.session.pem().as_bytes());
    let other = stage.file("other.pem", stage.public.pem().as_bytes());
    let ask = async |ca: &str, name: &str| {
        let words = [
            "openssl",
            "s_client",
            "-connect",
            &connect,
            "-servername",
            HOST,
            "-alpn",
            "h2,http/1.1",
            "-verify_hostname",
            name,
            "-verify_return_error",
            "-CAfile",
            ca,
            "-no-CApath",
            "-no-CAstore",
        ];
        text(&stage.program(&words).output().await.unwrap())
    };
    let said = ask(&own, HOST).await;
    assert!(
        said.contains("Verify return code: 0 (ok)") && said.contains("ALPN protocol: http/1.1"),
        "{said}"
    );
    assert!(ask(&other, HOST).await.contains("verify error"));
    assert!(ask(&own, "evil.example").await.contains("verify error"));
}

#[tokio::test(flavor = "multi_thread")]
async fn python_trusts_the_session_by_its_variables() {
    let stage = Stage::new("python").await;
    let script = format!(
        "import http.client, socket, ssl\n\
         c = http.client.HTTPSConnection('{HOST}', {port}, context=ssl.create_default_context())\n\
         c._create_connection = lambda a, *r: socket.create_connection(('127.0.0.1', {port}))\n\
         c.request('GET', '/', headers={{'Authorization': 'Bearer {placeholder}'}})\n\
         print(c.getresponse().read().decode())",
        port = stage.front.port(),
        placeholder = stage.placeholder,
    );
    let said = stage.program(&["/usr/bin/python3", "-c", &script]).output().await.unwrap();
    assert!(said.status.success(), "{}", text(&said));
    assert_eq!(stage.header("authorization"), Some(format!("Bearer {VALUE}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn node_trusts_the_session_by_its_variables() {
    if !is_here("node") {
        return;
    }
    let stage = Stage::new("node").await;
    let script = format!(
        "require('https').get({{host: '127.0.0.1', port: {}, servername: '{HOST}', headers: {{\
           host: '{HOST}', authorization: 'Bearer {}'}}}}, r => r.pipe(process.stdout))",
        stage.front.port(),
        stage.placeholder,
    );
    let said = stage.program(&["node", "-e", &script]).output().await.unwrap();
    assert!(said.status.success(), "{}", text(&said));
    assert_eq!(stage.header("authorization"), Some(format!("Bearer {VALUE}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn git_trusts_the_session_by_its_variables() {
    if !is_here("git") {
        return;
    }
    let stage = Stage::new("git").await;
    let url = stage.url("/repository.git");
    let port = stage.front.port();
    let resolve = format!("http.curloptResolve={HOST}:{port}:127.0.0.1");
    let header = format!("http.extraHeader=Authorization: Bearer {}", stage.placeholder);
    let words = ["git", "-c", &resolve, "-c", &header, "ls-remote", &url];
    let said = stage.program(&words).output().await.unwrap();
    // The stand-in is no repository; but it was asked, and by somebody who has the token.
    assert!(!text(&said).contains("SSL"), "{}", text(&said));
    assert_eq!(stage.header("authorization"), Some(format!("Bearer {VALUE}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn java_reads_the_store_of_certificates() {
    if !is_here("keytool") {
        return;
    }
    let stage = Stage::new("java").await;
    let trust = cofferdam_terminate::trust(&stage.session.pem(), &stage.public.pem(), &[]);
    let (_, store) = &trust.files[2];
    let file = stage.file("store.jks", store);
    let list = ["keytool", "-list", "-keystore", &file, "-storepass"];
    let said = stage.program(&[&list[..], &["changeit"]].concat()).output().await.unwrap();
    assert!(text(&said).contains("contains 2 entries"), "{}", text(&said));
    assert_eq!(text(&said).matches("trustedCertEntry").count(), 2, "{}", text(&said));
    let wrong = stage.program(&[&list[..], &["changeme"]].concat()).output().await.unwrap();
    assert!(!wrong.status.success());
}
