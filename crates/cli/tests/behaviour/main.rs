//! What Cofferdam promises about a run, shown by the real program in real sandboxes.
//!
//! Each test does its work as whoever runs the tests and, where that is root, as an ordinary user
//! too. Under `./test` the whole program runs again as the other sort of user, so that each person
//! comes once.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod alone;
mod approvals;
mod clients;
mod cow;
mod cow_between;
mod cow_carried;
mod cow_copies;
mod cow_held_names;
mod cow_history;
mod cow_mapped;
mod cow_snapshots;
mod cow_tree;
mod ending;
mod examine;
mod file_archive;
mod file_attacks;
mod file_search;
mod file_transfer;
mod file_watch;
mod files;
mod gates;
mod http_client;
mod http_files;
mod http_layers;
mod http_ports;
mod image_apt;
mod image_use;
mod images;
mod laboratory;
mod layers;
mod limits;
mod linked_work_trees;
mod manifest_archives;
mod manifest_mounts;
mod manifests;
mod mcp;
mod mcp_client;
mod mcp_install;
mod mcp_network;
mod network;
mod output;
mod patches;
mod place;
mod ports;
mod progress;
mod projects;
mod pulls;
mod receipts;
mod remote;
mod remote_ends;
mod remote_mcp;
mod remote_secrets;
mod remote_tls;
mod remote_verbs;
mod repositories;
mod schema;
mod secrets;
mod secrets_put_in;
mod serving;
mod serving_hangups;
mod serving_images;
mod serving_killed;
mod serving_room;
mod serving_secrecy;
mod serving_traces;
mod sessions;
mod sessions_durable;
mod sessions_full_disk;
mod sessions_led_elsewhere;
mod sessions_left;
mod sessions_named;
mod sessions_promises;
mod sessions_run;
mod sessions_silent;
mod sessions_soak;
mod sessions_terminal;
mod sessions_watch;
mod start;
mod terminal;
mod toolchains;
mod traces;
mod trust;
mod way_out;
mod without_namespaces;
mod workspace;
mod workspace_foreign;
