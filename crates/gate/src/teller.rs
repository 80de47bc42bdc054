//! What a gate says to its holder, over the control socket.

use cofferdam_core::SecretAlarm;
use cofferdam_core::network::FromGate;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};

/// How much may be left untold to a holder that does not listen. Further news is dropped, but for alarms.
const UNTOLD: usize = 1024;

/// Takes news. What is said first is told first, but for alarms, which are told before all else.
#[derive(Clone)]
pub(crate) struct Teller {
    news: mpsc::Sender<FromGate>,
    alarm: Arc<Alarm>,
}

/// What there is to tell.
pub(crate) struct Untold {
    news: mpsc::Receiver<FromGate>,
    alarm: Arc<Alarm>,
}

/// The place of an alarm, which nothing else takes.
#[derive(Default)]
struct Alarm {
    untold: Mutex<Option<SecretAlarm>>,
    raised: Notify,
}

impl Alarm {
    /// The one that is untold, as soon as there is one.
    async fn next(&self) -> SecretAlarm {
        loop {
            if let Some(alarm) = self.untold.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return alarm;
            }
            self.raised.notified().await;
        }
    }
}

impl Teller {
    /// What there is to tell comes out of the receiver.
    pub(crate) fn new() -> (Self, Untold) {
        let (told, untold) = mpsc::channel(UNTOLD);
        let alarm = Arc::<Alarm>::default();
        (Self { news: told, alarm: Arc::clone(&alarm) }, Untold { news: untold, alarm })
    }

    pub(crate) fn tell(&self, news: FromGate) {
        match news {
            FromGate::Alarm(alarm) => self.raise(alarm),
            news @ (FromGate::Waits(_) | FromGate::Settled(..) | FromGate::Denied(_)) => {
                let _ = self.news.try_send(news);
            }
        }
    }

    /// Is told whatever else is untold. While one is untold a further one adds nothing: the sandbox is
    /// stopped by the first.
    fn raise(&self, alarm: SecretAlarm) {
        self.alarm.untold.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(alarm);
        self.alarm.raised.notify_one();
    }
}

/// Tells the other side of the control socket what there is to tell, as it takes it.
pub(crate) async fn tell(mut told: Untold, to: Arc<UnixStream>) {
    loop {
        let news = tokio::select! {
            biased;
            alarm = told.alarm.next() => FromGate::Alarm(alarm),
            news = told.news.recv() => match news {
                Some(news) => news,
                None => return,
            },
        };
        let Ok(mut line) = serde_json::to_vec(&news) else { continue };
        line.push(b'\n');
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            if to.writable().await.is_err() {
                return;
            }
            match to.try_write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                // The other side is gone, which ends this gate.
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Settlement;
    use tokio::io::AsyncReadExt;

    fn alarm(port: u16) -> FromGate {
        FromGate::Alarm(SecretAlarm { secret: "T".parse().unwrap(), host: "a.test".into(), port })
    }

    async fn heard(told: Untold) -> Vec<FromGate> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let telling = tokio::spawn(tell(told, Arc::new(ours)));
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        telling.await.unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[tokio::test]
    async fn an_alarm_is_told_however_much_is_untold_and_before_it() {
        let (teller, told) = Teller::new();
        let many = u64::try_from(UNTOLD).unwrap() + 100;
        (1..=many).for_each(|number| teller.tell(FromGate::Settled(number, Settlement::Gone)));
        teller.tell(alarm(1));
        teller.tell(alarm(2));
        drop(teller);
        let heard = heard(told).await;
        assert_eq!(heard.len(), UNTOLD + 1, "control: what there is no room for is dropped");
        assert_eq!(heard.first(), Some(&alarm(1)));
        assert_eq!(heard.get(1), Some(&FromGate::Settled(1, Settlement::Gone)));
    }

    #[tokio::test]
    async fn a_later_alarm_is_told_again_and_one_at_the_last_moment_too() {
        let (teller, told) = Teller::new();
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let telling = tokio::spawn(tell(told, Arc::new(ours)));
        let mut text = Vec::new();
        for port in [1, 2] {
            teller.tell(alarm(port));
            let count = text.len();
            while !text.get(count..).unwrap().contains(&b'\n') {
                assert!(theirs.read_buf(&mut text).await.unwrap() > 0);
            }
        }
        teller.tell(alarm(3));
        drop(teller);
        theirs.read_to_end(&mut text).await.unwrap();
        telling.await.unwrap();
        let text = String::from_utf8(text).unwrap();
        let heard: Vec<FromGate> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(heard, [alarm(1), alarm(2), alarm(3)]);
    }
}
