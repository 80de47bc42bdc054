//! What a battery of attacks says about a sandbox.

pub use cofferdam_core::proof::{CheckReport, ProbeReport, StoppedBy, Verdict};
use cofferdam_core::{Axis, Basis, Degree, Enforced, LimitsCount};
use cofferdam_wire::message::{Attempt, Check, Proof};

/// What is known of a battery before it runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected<'a> {
    /// The checks that it must have made, by name. A proof that leaves one out is incomplete.
    pub checks: &'a [&'a str],
    /// The checks that cannot be tried here and need not be, by name.
    pub not_applicable: &'a [&'a str],
}

/// Decides how far each axis holds.
///
/// An axis is full only where all its checks were made, all its attacks failed and all controls
/// succeeded. A control that failed makes it none, because then nothing is known; so does an axis
/// without a check. An attack that succeeded, or was not tried, makes it partial; if none was
/// stopped, none.
pub fn judge(proof: &Proof, expected: Expected<'_>) -> Enforced {
    let mut enforced = Enforced::full(Basis::Probed);
    for axis in Axis::ALL {
        judge_axis(&mut enforced, axis, proof, expected);
    }
    // HOSTILE: a proof comes from inside. An axis that nobody knows says nothing about the others.
    for check in proof.checks.iter().filter(|check| axis_of(&check.axis).is_none()) {
        let reason = format!("{} counts for no known axis", check.name);
        Axis::ALL.into_iter().for_each(|axis| enforced.lower(axis, Degree::Partial, &reason));
    }
    for name in expected.checks.iter().filter(|name| is_missing(proof, name)) {
        let reason = format!("{name} was not checked");
        match name.split('.').next().and_then(axis_of) {
            Some(axis) => enforced.lower(axis, Degree::Partial, &reason),
            // The name of a check of usability does not tell its axis.
            None => Axis::ALL.into_iter().for_each(|a| enforced.lower(a, Degree::Partial, &reason)),
        }
    }
    enforced
}

fn judge_axis(enforced: &mut Enforced, axis: Axis, proof: &Proof, expected: Expected<'_>) {
    let checks = || proof.checks.iter().filter(|check| axis_of(&check.axis) == Some(axis));
    if checks().next().is_none() {
        return enforced.lower(axis, Degree::None, "nothing was checked");
    }
    let held = checks().any(|check| verdict(check, expected) == Verdict::Held && is_attack(check));
    for check in checks() {
        let name = &check.name;
        match verdict(check, expected) {
            Verdict::Held | Verdict::NotApplicable => {}
            Verdict::ControlFailed => {
                let reason = format!("{name} tells nothing: {}", say(&check.control));
                enforced.lower(axis, Degree::None, &reason);
            }
            Verdict::Broken => {
                let degree = if held { Degree::Partial } else { Degree::None };
                enforced.lower(axis, degree, &format!("{name} is broken: {}", say(&check.attack)));
            }
            Verdict::NotTried => {
                let tried =
                    if is_not_tried(&check.control) { &check.control } else { &check.attack };
                let reason = format!("{name} was not tried: {}", say(tried));
                enforced.lower(axis, Degree::Partial, &reason);
            }
        }
    }
}

/// What one check came to.
pub fn verdict(check: &Check, expected: Expected<'_>) -> Verdict {
    let excused = expected.not_applicable.contains(&check.name.as_str());
    match (&check.attack, &check.control) {
        // ORDER: what is broken is broken, whatever the control says.
        (Attempt::Succeeded(_), _) => Verdict::Broken,
        (_, Attempt::Failed { .. }) => Verdict::ControlFailed,
        (Attempt::NotTried(_), Attempt::Succeeded(_)) if !is_attack(check) => Verdict::Held,
        (Attempt::NotTried(_), _) | (_, Attempt::NotTried(_)) if excused => Verdict::NotApplicable,
        (Attempt::NotTried(_), _) | (_, Attempt::NotTried(_)) => Verdict::NotTried,
        (Attempt::Failed { .. }, Attempt::Succeeded(_)) => Verdict::Held,
    }
}

/// Puts a proof into the shape that every door shows.
pub fn report(
    profile: &str,
    proof: &Proof,
    expected: Expected<'_>,
    limits_count: LimitsCount,
) -> ProbeReport {
    let enforced = judge(proof, expected);
    ProbeReport {
        profile: profile.to_owned(),
        overall: enforced.overall(limits_count),
        enforced,
        checks: proof.checks.iter().map(|check| report_check(check, expected)).collect(),
    }
}

fn report_check(check: &Check, expected: Expected<'_>) -> CheckReport {
    let verdict = verdict(check, expected);
    let stopped_by = match &check.attack {
        Attempt::Failed { errno, .. } => {
            Some(StoppedBy { errno: errno_name(*errno), layer: check.layer.clone() })
        }
        Attempt::Succeeded(_) | Attempt::NotTried(_) => None,
    };
    CheckReport {
        name: check.name.clone(),
        promise: check.promise.clone(),
        axis: check.axis.clone(),
        held: verdict == Verdict::Held,
        verdict,
        stopped_by,
        attack: say(&check.attack),
        control: say(&check.control),
    }
}

fn is_missing(proof: &Proof, name: &str) -> bool {
    !proof.checks.iter().any(|check| check.name == name)
}

/// A check of usability attacks nothing: its control is all of it.
fn is_attack(check: &Check) -> bool {
    !matches!(&check.attack, Attempt::NotTried(why) if why == cofferdam_guestd::prove::USABILITY)
}

fn is_not_tried(attempt: &Attempt) -> bool {
    matches!(attempt, Attempt::NotTried(_))
}

fn axis_of(name: &str) -> Option<Axis> {
    Axis::ALL.into_iter().find(|axis| axis.name() == name)
}

/// The longest text from inside that is passed on.
const TEXT_CHARS: usize = 300;

fn say(attempt: &Attempt) -> String {
    let text = match attempt {
        Attempt::Succeeded(what) => what.clone(),
        Attempt::Failed { errno: 0, call } => call.clone(),
        Attempt::Failed { errno, call } => match errno_name(*errno) {
            Some(name) => format!("{call}: {name}"),
            None => format!("{call}: error {errno}"),
        },
        Attempt::NotTried(why) => why.clone(),
    };
    // HOSTILE: it comes from inside and goes to a terminal.
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().take(TEXT_CHARS).map(clean).collect()
}

/// The name of an error number, for those that attacks meet.
pub fn errno_name(errno: i32) -> Option<String> {
    const NAMES: [(i32, &str); 41] = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::ESRCH, "ESRCH"),
        (libc::EINTR, "EINTR"),
        (libc::EIO, "EIO"),
        (libc::ENXIO, "ENXIO"),
        (libc::E2BIG, "E2BIG"),
        (libc::EBADF, "EBADF"),
        (libc::ECHILD, "ECHILD"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::EACCES, "EACCES"),
        (libc::EFAULT, "EFAULT"),
        (libc::EBUSY, "EBUSY"),
        (libc::EEXIST, "EEXIST"),
        (libc::EXDEV, "EXDEV"),
        (libc::ENODEV, "ENODEV"),
        (libc::ENOTDIR, "ENOTDIR"),
        (libc::EISDIR, "EISDIR"),
        (libc::EINVAL, "EINVAL"),
        (libc::EMFILE, "EMFILE"),
        (libc::ENOTTY, "ENOTTY"),
        (libc::EFBIG, "EFBIG"),
        (libc::ENOSPC, "ENOSPC"),
        (libc::EROFS, "EROFS"),
        (libc::EMLINK, "EMLINK"),
        (libc::EPIPE, "EPIPE"),
        (libc::ELOOP, "ELOOP"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ENOTEMPTY, "ENOTEMPTY"),
        (libc::ENODATA, "ENODATA"),
        (libc::EBADMSG, "EBADMSG"),
        (libc::EOPNOTSUPP, "EOPNOTSUPP"),
        (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ETIMEDOUT, "ETIMEDOUT"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::EHOSTUNREACH, "EHOSTUNREACH"),
    ];
    NAMES.iter().find(|(number, _)| *number == errno).map(|(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::Enforcement;
    use cofferdam_guestd::prove::USABILITY;

    fn stopped() -> Attempt {
        Attempt::Failed { errno: libc::EPERM, call: "x".to_owned() }
    }

    fn did() -> Attempt {
        Attempt::Succeeded("x".to_owned())
    }

    fn untried() -> Attempt {
        Attempt::NotTried("x".to_owned())
    }

    fn check(name: &str, attack: Attempt, control: Attempt) -> Check {
        let axis = name.split('.').next().unwrap().to_owned();
        Check {
            name: name.to_owned(),
            promise: "P1".to_owned(),
            axis,
            attack,
            control,
            layer: "seccomp".to_owned(),
        }
    }

    /// A proof in which one check holds on every axis, and these are added.
    fn proof(more: Vec<Check>) -> Proof {
        let held = Axis::ALL.map(|a| check(&format!("{}.held", a.name()), stopped(), did()));
        Proof { checks: held.into_iter().chain(more).collect() }
    }

    fn files(more: Vec<Check>) -> Degree {
        judge(&proof(more), Expected::default()).files
    }

    #[test]
    fn all_held_is_full_and_probed() {
        assert_eq!(judge(&proof(vec![]), Expected::default()), Enforced::full(Basis::Probed));
    }

    #[test]
    fn one_attack_that_succeeds_makes_an_axis_partial() {
        let enforced = judge(&proof(vec![check("files.a", did(), did())]), Expected::default());
        assert_eq!(enforced.files, Degree::Partial);
        assert_eq!(enforced.network, Degree::Full);
        assert_eq!(enforced.reasons, ["files: files.a is broken: x"]);
    }

    #[test]
    fn an_axis_on_which_no_attack_was_stopped_is_none() {
        let mut proof = proof(vec![check("files.a", did(), did())]);
        proof.checks.retain(|check| check.name != "files.held");
        assert_eq!(judge(&proof, Expected::default()).files, Degree::None);
    }

    #[test]
    fn a_control_that_fails_makes_an_axis_none() {
        assert_eq!(files(vec![check("files.a", stopped(), stopped())]), Degree::None);
    }

    #[test]
    fn what_is_broken_is_broken_whatever_the_control_says() {
        let check = check("files.a", did(), stopped());
        assert_eq!(verdict(&check, Expected::default()), Verdict::Broken);
    }

    #[test]
    fn what_was_not_tried_is_partial_unless_it_need_not_be() {
        let not_tried = || proof(vec![check("files.a", untried(), did())]);
        assert_eq!(judge(&not_tried(), Expected::default()).files, Degree::Partial);
        let excused = Expected { checks: &[], not_applicable: &["files.a"] };
        assert_eq!(judge(&not_tried(), excused).files, Degree::Full);
        assert_eq!(files(vec![check("files.a", stopped(), untried())]), Degree::Partial);
    }

    #[test]
    fn an_excuse_covers_neither_a_success_nor_a_failed_control() {
        let excused = Expected { checks: &[], not_applicable: &["files.a"] };
        let degree = |check| judge(&proof(vec![check]), excused).files;
        assert_eq!(degree(check("files.a", did(), did())), Degree::Partial);
        assert_eq!(degree(check("files.a", stopped(), stopped())), Degree::None);
        assert_eq!(degree(check("files.a", untried(), stopped())), Degree::None);
    }

    #[test]
    fn usability_is_judged_by_its_control_alone() {
        let usable = || Attempt::NotTried(USABILITY.to_owned());
        assert_eq!(files(vec![check("files.use", usable(), did())]), Degree::Full);
        assert_eq!(files(vec![check("files.use", usable(), stopped())]), Degree::None);
        assert_eq!(files(vec![check("files.use", usable(), untried())]), Degree::Partial);
    }

    #[test]
    fn an_axis_without_a_check_is_none() {
        let enforced = judge(&Proof::default(), Expected::default());
        assert!(Axis::ALL.iter().all(|axis| enforced.degree(*axis) == Degree::None));
    }

    #[test]
    fn a_check_that_is_missing_makes_its_axis_partial() {
        let expected = Expected { checks: &["network.gone"], not_applicable: &[] };
        let enforced = judge(&proof(vec![]), expected);
        assert_eq!((enforced.network, enforced.files), (Degree::Partial, Degree::Full));
    }

    #[test]
    fn an_unknown_axis_leaves_no_axis_full() {
        let enforced = judge(&proof(vec![check("luck.a", stopped(), did())]), Expected::default());
        assert!(Axis::ALL.iter().all(|axis| enforced.degree(*axis) == Degree::Partial));
    }

    #[test]
    fn a_report_names_error_and_layer_and_is_clean() {
        let mut broken = check("files.a", did(), did());
        broken.attack = Attempt::Succeeded("\u{1b}[31mred".to_owned());
        let report =
            report("no-network", &proof(vec![broken]), Expected::default(), LimitsCount::No);
        assert_eq!(report.overall, Enforcement::Partial);
        let first = report.checks.first().unwrap();
        let stopped_by = StoppedBy { errno: Some("EPERM".to_owned()), layer: "seccomp".to_owned() };
        assert_eq!((first.held, &first.stopped_by), (true, &Some(stopped_by)));
        let last = report.checks.last().unwrap();
        assert_eq!((last.held, last.attack.as_str()), (false, "\u{fffd}[31mred"));
    }
}
