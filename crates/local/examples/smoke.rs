use cofferdam_local::launch::*;
use cofferdam_wire::plan::*;
fn main() {
    let root = std::env::args().nth(1).as_deref() == Some("root");
    let n = |op| Step { op, why: String::new(), need: Need::Required };
    let bind = |s: &str, d: bool, w: bool, o| {
        n(Op::Bind(Bind {
            source: s.into(),
            path: s.into(),
            access: if w { Access::ReadWrite } else { Access::ReadOnly },
            depth: Depth::One,
            devices: d,
            owner: o,
            identity: None,
        }))
    };
    let uid = if root {
        2000100000
    } else {
        std::fs::metadata("/proc/self").map(|m| std::os::unix::fs::MetadataExt::uid(&m)).unwrap()
    };
    let ws = std::env::current_dir().unwrap();
    let ws = ws.to_str().unwrap().to_owned();
    let m = std::fs::metadata(&ws).unwrap();
    use std::os::unix::fs::MetadataExt;
    let plan = Plan {
        namespaces: vec![
            Namespace::User,
            Namespace::Mount,
            Namespace::Pid,
            Namespace::Network,
            Namespace::Ipc,
            Namespace::Uts,
            Namespace::Cgroup,
        ],
        uid_map: vec![IdRange { inside: 1000, outside: uid, count: 1 }],
        gid_map: vec![IdRange {
            inside: 1000,
            outside: if root { 2000100000 } else { m.gid() },
            count: 1,
        }],
        steps: vec![
            n(Op::PrivateMounts),
            n(Op::JoinCgroups),
            n(Op::HostName("cofferdam".into())),
            n(Op::NewRoot { size_bytes: 1 << 20, inodes: 1000 }),
            bind("/usr", false, false, Owner::Same),
            n(Op::Symlink { path: "/bin".into(), target: "usr/bin".into() }),
            n(Op::Symlink { path: "/lib".into(), target: "usr/lib".into() }),
            n(Op::Symlink { path: "/lib64".into(), target: "usr/lib64".into() }),
            bind("/dev/null", true, true, Owner::Same),
            n(Op::Devpts { path: "/dev/pts".into() }),
            n(Op::Proc { path: "/proc".into() }),
            n(Op::NoUserNamespaces),
            n(Op::Pin { path: "/proc/sys".into(), access: Access::ReadOnly }),
            n(Op::Mask { path: "/proc/cmdline".into() }),
            n(Op::Tmpfs { path: "/tmp".into(), size_bytes: 1 << 20, inodes: 100, mode: 0o1777 }),
            bind(
                &ws,
                false,
                true,
                if root { Owner::Mapped { uid: m.uid(), gid: m.gid() } } else { Owner::Same },
            ),
            n(Op::Rebind { from: ws.clone(), path: "/workspace".into() }),
            n(Op::SealRoot),
            n(Op::Pivot),
            n(Op::LoopbackUp),
            n(Op::ResourceLimit { resource: Resource::Core, limit: 0 }),
            n(Op::Identity { uid: 1000, gid: 1000 }),
            n(Op::Capabilities { keep: vec![] }),
            n(Op::NoNewPrivileges),
            n(Op::NotDumpable),
            n(Op::Landlock(Landlock {
                abi: 7,
                read: vec!["/usr".into(), "/bin".into(), "/proc".into()],
                write: vec!["/tmp".into(), ws.clone(), "/workspace".into()],
                devices: vec!["/dev/null".into(), "/dev/pts".into()],
                no_tcp: true,
                scoped: true,
            })),
        ],
    };
    let argv: Vec<_> = std::env::args().skip(2).map(|a| a.into()).collect();
    let r = cofferdam_local::oneshot::smoke(&plan, argv);
    println!("{r:#?}");
}
