//! What was measured on, and whether it was quiet.

use super::measure::as_f64;
use super::programs::Ground;
use std::process::Command;
use std::time::Duration;

/// Facts for the head of the report: a name and a value each.
pub(super) fn facts(ground: &Ground) -> Vec<(&'static str, String)> {
    let people: Vec<&str> = ground.people.iter().map(|person| person.who).collect();
    vec![
        ("Date", answer("date", &["-u", "+%Y-%m-%d"])),
        ("Revision", answer("git", &["describe", "--always", "--dirty"])),
        ("Processor", processor()),
        ("Processors allowed", status_line("Cpus_allowed_list:")),
        ("Memory", memory()),
        ("Kernel", answer("uname", &["-sr"])),
        ("Control groups", control_groups()),
        ("Compiler", answer("rustc", &["--version"])),
        ("bubblewrap", answer("bwrap", &["--version"])),
        ("Measured as", people.join(", ")),
    ]
}

/// A remark where other work keeps the processors busy before anything is measured.
pub(super) fn quiet() -> Option<String> {
    let before = processor_ticks()?;
    std::thread::sleep(Duration::from_millis(500));
    let after = processor_ticks()?;
    let all = after.0.checked_sub(before.0)?;
    let idle = after.1.saturating_sub(before.1);
    let busy = 1.0 - as_f64(idle) / as_f64(all.max(1));
    (busy > 0.10).then(|| {
        let percent = busy * 100.0;
        format!("The processors were {percent:.0} % busy with other work when the run began.")
    })
}

/// All ticks and idle ticks since the machine started.
fn processor_ticks() -> Option<(u64, u64)> {
    let text = read("/proc/stat")?;
    let numbers: Vec<u64> =
        text.lines().next()?.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let idle = numbers.get(3)? + numbers.get(4).copied().unwrap_or(0);
    Some((numbers.iter().take(8).sum(), idle))
}

fn processor() -> String {
    let text = read("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{count} × {}", model.map_or("unknown", |(_, name)| name))
}

fn memory() -> String {
    let text = read("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map_or("unknown".to_owned(), |kib| format!("{} GiB", kib >> 20))
}

fn control_groups() -> String {
    let v2 = read("/sys/fs/cgroup/cgroup.controllers");
    match v2 {
        Some(controllers) if controllers.contains("memory") => "v2".to_owned(),
        Some(_) => "v2 without controllers".to_owned(),
        None => "v1, or both".to_owned(),
    }
}

fn status_line(name: &str) -> String {
    let text = read("/proc/self/status").unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.map_or("unknown".to_owned(), |value| value.trim().to_owned())
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The first line that a program prints, or a dash.
fn answer(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(crate::tidy::root()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let text = text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("–").to_owned()
}
