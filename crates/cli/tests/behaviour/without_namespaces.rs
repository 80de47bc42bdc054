//! What is left where the host forbids user namespaces, which is much less, and said.

use crate::place::{PYTHON, Place, SOON, Said, everyone, outcome, skipped, until};
use crate::traces::processes;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Forbids further user namespaces in one of the caller's own, and gives back every right.
const FORBID: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
    exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all -- /bin/sh -c \"$SCRIPT\"";

/// What a script comes to where the host forbids user namespaces. `$C` is the program.
fn forbidden(place: &Place, script: &str) -> Said {
    let mut command = place.host("unshare");
    command.args(["--user", "--map-current-user", "--keep-caps", "/bin/sh", "-c", FORBID]);
    command.env("SCRIPT", script).env("C", place.program());
    outcome(&mut command, 2 * SOON)
}

/// Does something as each ordinary user that can be had.
fn ordinary_users(promise: impl Fn(&Place)) {
    everyone(|place| {
        if place.is_root() {
            return;
        }
        match forbidden(place, "true").code() {
            Some(0) => promise(place),
            _ => skipped("user", "unshare of this host cannot keep rights in a user namespace"),
        }
    });
}

#[test]
fn a_run_is_refused_unless_less_is_accepted() {
    ordinary_users(|place| {
        let said = forbidden(place, "$C run -- true");
        assert_eq!(said.code(), Some(125), "{said:?}");
        assert!(said.stderr.contains("there is no mount namespace"), "{said:?}");
        let said = forbidden(place, "$C run --on-unavailable degrade -- echo ran");
        assert_eq!((said.code(), said.text().as_str()), (Some(0), "ran\n"), "{said:?}");
        assert!(said.stderr.contains("not fully enforced"), "{said:?}");
        let said = forbidden(place, "$C probe");
        assert_eq!(said.code(), Some(1), "{said:?}");
    });
}

#[test]
fn files_and_tcp_stay_closed_all_the_same() {
    ordinary_users(|place| {
        let secret = place.base.join("home/secret");
        fs::write(&secret, "the-secret").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        place.give(&secret);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let attack = format!(
            "cat {secret}; echo in > {base}/home/planted; echo in > inside; \
             {PYTHON} -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})); print(\"tcp\")'",
            secret = secret.display(),
            base = place.base.display(),
        );
        let place_of = |line: &str| place.workspace.join(line);
        place.write("attack", &attack);
        let control = forbidden(place, "/bin/sh ./attack");
        assert_eq!(control.text(), "the-secrettcp\n", "{control:?}");
        assert!(place.base.join("home/planted").exists() && place_of("inside").exists());
        fs::remove_file(place.base.join("home/planted")).unwrap();
        fs::remove_file(place_of("inside")).unwrap();
        let said = forbidden(place, "$C run --on-unavailable degrade -- /bin/sh ./attack");
        assert_eq!(said.text(), "", "{said:?}");
        assert!(!place.base.join("home/planted").exists(), "{said:?}");
        assert_eq!(fs::read_to_string(place_of("inside")).unwrap(), "in\n");
    });
}

#[test]
fn a_session_lives_pauses_and_leaves_nothing() {
    ordinary_users(|place| {
        let script = format!(
            "set -e; $C create --name s --on-unavailable degrade >&2; \
             $C exec s --shell 'echo kept > ~/note'; \
             $C exec s -d --id d --shell ': {marker}; setsid sleep 1000 & exec sleep 1000' >&2; \
             $C pause s; $C show s --json | grep -o '\"phase\":\"[a-z]*\"'; $C resume s; \
             $C exec s --shell 'cat ~/note'; \
             $C exec s --timeout 300ms --shell ': {marker}; sleep 1000' || echo $?; \
             $C rm s; $C ls --json",
            marker = place.marker,
        );
        let said = forbidden(place, &script);
        let wanted = "\"phase\":\"paused\"\nkept\n124\n{\"sessions\":[]}\n";
        assert_eq!((said.code(), said.text().as_str()), (Some(0), wanted), "{said:?}");
        let gone = || processes(&place.marker).is_empty().then_some(());
        assert!(until(SOON, gone).is_some(), "{:?}", processes(&place.marker));
    });
}
