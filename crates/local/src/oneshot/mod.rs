//! One fresh sandbox, one command, gone. What `cofferdam run` does, without any runtime or thread.

mod drive;
mod screen;
mod stream;

/// temporary
pub fn smoke(
    plan: &cofferdam_wire::plan::Plan,
    argv: Vec<cofferdam_wire::ByteString>,
) -> cofferdam_core::Result<String> {
    use cofferdam_wire::message::*;
    let t = std::time::Instant::now();
    let mut born = crate::launch::launch(plan, crate::launch::Groups::default())?;
    let mut line = cofferdam_guestd::line::Line::new(born.take_line().unwrap());
    rustix::io::ioctl_fionbio(line.socket(), false).unwrap();
    let greet = loop {
        use rustix::event::*;
        let mut p = [PollFd::from_borrowed_fd(line.socket(), PollFlags::IN)];
        poll(&mut p, None).unwrap();
        drop(p);
        if line.fill().is_err() {
            return Ok("line lost".into());
        }
        if let Ok(Some((_, b))) = line.next_frame() {
            break cofferdam_guestd::line::understand::<Greeting>(&b);
        }
    };
    eprintln!("{:?} {:?}", t.elapsed(), greet);
    let (or, ow) = stream::large_pipe().unwrap();
    let (er, ew) = stream::large_pipe().unwrap();
    let sp = Spawn {
        id: "a".into(),
        argv,
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: "/workspace".into(),
        stdio: Stdio::Streams {
            stdin: Stream::Null,
            stdout: Stream::Descriptor(0),
            stderr: Stream::Descriptor(1),
        },
        timeout_ms: None,
        descendants: Descendants::DieWithSandbox,
    };
    use std::os::fd::AsFd;
    let d = drive::drive(
        &born,
        line,
        sp,
        vec![ow, ew],
        drive::Drive {
            stdout: Some(
                stream::Output::new(or, stream::Sink::caller(std::io::stdout().as_fd()).unwrap())
                    .unwrap(),
            ),
            stderr: Some(
                stream::Output::new(er, stream::Sink::caller(std::io::stderr().as_fd()).unwrap())
                    .unwrap(),
            ),
            stdin: None,
            screen: None,
            timeout: None,
            max_output: u64::MAX,
        },
    )?;
    born.wait()?;
    Ok(format!("{:?} {:?} {:?}", t.elapsed(), d.last, d.killed))
}
