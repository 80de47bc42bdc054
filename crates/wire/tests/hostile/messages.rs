//! What must hold for any message that comes from inside. Shared with the fuzz targets.

use cofferdam_wire::ByteString;
use cofferdam_wire::files;
use cofferdam_wire::message::{FromProcess, Greeting, GuestOpens, HostOpens, Proof, ToProcess};
use cofferdam_wire::plan::Plan;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Any bytes are a message that means the same when it is written and read again, or refused.
pub(crate) fn message(bytes: &[u8]) {
    one::<HostOpens>(bytes);
    one::<ToProcess>(bytes);
    one::<Greeting>(bytes);
    one::<FromProcess>(bytes);
    one::<GuestOpens>(bytes);
    one::<Proof>(bytes);
    one::<ByteString>(bytes);
    one::<files::Greeting>(bytes);
    one::<files::Request>(bytes);
    one::<files::Answer>(bytes);
    // The reasons in a plan stay on the host, so a plan is not the same after the way.
    drop(serde_json::from_slice::<Plan>(bytes));
}

fn one<T: DeserializeOwned + Serialize + PartialEq>(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(bytes) else { return };
    let again = serde_json::to_vec(&message).ok();
    let read = again.and_then(|again| serde_json::from_slice::<T>(&again).ok());
    assert!(read.as_ref() == Some(&message), "a message changed on its way");
}
