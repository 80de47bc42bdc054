//! The program against another compiler's, and against what it is for.

use super::native::AUDIT_ARCH;
use super::{
    Clause, Decision, Errno, Instruction, Scope, Surface, Test, Tracing, Verdict, program, rules,
};
use cofferdam_core::User;
use proptest::prelude::*;
use proptest::sample::select;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What the kernel hands to a filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) number: u32,
    pub(super) arch: u32,
    pub(super) arguments: [u64; 6],
}

impl Asked {
    fn word(&self, offset: u32) -> u32 {
        match offset {
            0 => self.number,
            4 => self.arch,
            16..64 if offset.is_multiple_of(4) => {
                let argument = self.arguments[(offset as usize - 16) / 8];
                let half =
                    if offset.is_multiple_of(8) { argument << 32 >> 32 } else { argument >> 32 };
                u32::try_from(half).unwrap()
            }
            _ => panic!("load from {offset}"),
        }
    }
}

/// Runs a program as the kernel does.
pub(super) fn run(program: &[Instruction], asked: &Asked) -> u32 {
    let mut at = 0;
    let mut accumulator = 0;
    loop {
        let (code, jt, jf, k) = program[at];
        let jump = |yes: bool| usize::from(if yes { jt } else { jf });
        at += 1 + match code {
            0x20 => {
                accumulator = asked.word(k);
                0
            }
            0x54 => {
                accumulator &= k;
                0
            }
            0x05 => k as usize,
            0x15 => jump(accumulator == k),
            0x25 => jump(accumulator > k),
            0x35 => jump(accumulator >= k),
            0x45 => jump(accumulator & k != 0),
            0x06 => return k,
            _ => panic!("instruction {code:#x}"),
        };
    }
}

fn ours(surface: Surface) -> &'static [Instruction] {
    static ALL: LazyLock<Vec<Vec<Instruction>>> =
        LazyLock::new(|| Surface::ALL.iter().map(|one| program(one).unwrap()).collect());
    &ALL[Surface::ALL.iter().position(|one| *one == surface).unwrap()]
}

/// The same rows through seccompiler. It knows one action at a time, so there is a filter per
/// clause and action, asked in order; each traps where it has nothing to say.
struct Oracle {
    filters: Vec<Vec<Instruction>>,
}

/// What seccompiler takes: conditions by number.
type Rows = BTreeMap<i64, Vec<SeccompRule>>;

fn action(verdict: Verdict) -> SeccompAction {
    match verdict {
        Verdict::Allow => SeccompAction::Allow,
        Verdict::Refuse(errno) => SeccompAction::Errno(errno.number()),
        Verdict::KillProcess => SeccompAction::KillProcess,
    }
}

fn conditions(test: &Test) -> Vec<SeccompCondition> {
    let low = SeccompCmpArgLen::Dword;
    match *test {
        Test::OneOf { argument, mask, values } => values
            .iter()
            .map(|value| {
                let op = SeccompCmpOp::MaskedEq(mask.into());
                SeccompCondition::new(argument, low.clone(), op, (*value).into()).unwrap()
            })
            .collect(),
        Test::AnyBit { argument, bits } => (0..32)
            .map(|bit| 1_u64 << bit)
            .filter(|bit| u64::from(bits) & bit != 0)
            .map(|bit| {
                let op = SeccompCmpOp::MaskedEq(bit);
                SeccompCondition::new(argument, low.clone(), op, bit).unwrap()
            })
            .collect(),
        Test::NotNull { argument } => {
            let whole = SeccompCmpArgLen::Qword;
            vec![SeccompCondition::new(argument, whole, SeccompCmpOp::Ne, 0).unwrap()]
        }
    }
}

/// All ways in which a clause can hold.
fn alternatives(clause: &Clause) -> Vec<SeccompRule> {
    let mut ways: Vec<Vec<SeccompCondition>> = vec![Vec::new()];
    for test in clause.tests {
        let choices = conditions(test);
        ways = ways
            .iter()
            .flat_map(|way| {
                choices.iter().map(move |choice| {
                    way.iter().cloned().chain([choice.clone()]).collect::<Vec<_>>()
                })
            })
            .collect();
    }
    ways.into_iter().map(|way| SeccompRule::new(way).unwrap()).collect()
}

impl Oracle {
    fn new(surface: &Surface) -> Self {
        // Layer, then verdict. Calls without conditions are the last layer.
        let mut layers: BTreeMap<(usize, u32), (Verdict, Rows)> = BTreeMap::new();
        let mut add = |layer, verdict: Verdict, number, rule| {
            let key = (layer, verdict.action());
            let entry = layers.entry(key).or_insert_with(|| (verdict, Rows::new()));
            entry.1.insert(number, rule);
        };
        for rule in rules(surface) {
            let Scope::Calls(calls) = rule.scope else { continue };
            for call in calls {
                match rule.decision {
                    Decision::Always(verdict) => add(usize::MAX, verdict, call.number, Vec::new()),
                    Decision::ByArguments { clauses, otherwise } => {
                        for (layer, clause) in clauses.iter().enumerate() {
                            add(layer, clause.verdict, call.number, alternatives(clause));
                        }
                        add(usize::MAX, otherwise, call.number, Vec::new());
                    }
                }
            }
        }
        let arch = std::env::consts::ARCH.try_into().unwrap();
        let filters = layers.into_values().map(|(verdict, rules)| {
            let trap = SeccompAction::Trap;
            let filter = SeccompFilter::new(rules, trap, action(verdict), arch).unwrap();
            let program: BpfProgram = filter.try_into().unwrap();
            program.iter().map(|one| (one.code, one.jt, one.jf, one.k)).collect()
        });
        Self { filters: filters.collect() }
    }

    fn of(surface: Surface) -> &'static Self {
        static ALL: LazyLock<Vec<Oracle>> =
            LazyLock::new(|| Surface::ALL.iter().map(Oracle::new).collect());
        &ALL[Surface::ALL.iter().position(|one| *one == surface).unwrap()]
    }

    /// Not for x32, which it takes for unlisted calls.
    fn answer(&self, asked: &Asked) -> u32 {
        let trap = u32::from(SeccompAction::Trap);
        let said = self.filters.iter().map(|filter| run(filter, asked));
        said.into_iter()
            .find(|answer| *answer != trap)
            .unwrap_or(Verdict::Refuse(Errno::Enosys).action())
    }
}

/// Every value that the table compares with, and its neighbours.
fn edges() -> Vec<u32> {
    let mut all = vec![0, 1, 2, 3, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0o666, 0o1777];
    for rule in rules(&Surface::ALL[3]) {
        let Decision::ByArguments { clauses, .. } = rule.decision else { continue };
        for test in clauses.iter().flat_map(|clause| clause.tests) {
            match *test {
                Test::OneOf { values, mask, .. } => {
                    all.extend(values);
                    all.extend(values.iter().map(|value| value | !mask));
                }
                Test::AnyBit { bits, .. } => {
                    all.extend((0..32).map(|bit| 1 << bit).filter(|bit| bits & bit != 0));
                    all.push(!bits);
                }
                Test::NotNull { .. } => {}
            }
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn same(surface: Surface, asked: &Asked) {
    let expected = Oracle::of(surface).answer(asked);
    assert_eq!(run(ours(surface), asked), expected, "{surface:?} {asked:x?}");
}

#[test]
fn every_number_gets_the_answer_of_another_compiler() {
    let edges = edges();
    for surface in Surface::ALL {
        for number in (0..600).chain([0x3fff_ffff, u32::MAX]) {
            for value in &edges {
                for high in [0, 1, u64::from(u32::MAX)] {
                    let argument = high << 32 | u64::from(*value);
                    let arguments = [argument; 6];
                    same(surface, &Asked { number, arch: AUDIT_ARCH, arguments });
                }
            }
        }
    }
}

#[test]
fn each_argument_by_itself_gets_the_answer_of_another_compiler() {
    let edges = edges();
    let surface = Surface::ALL[0];
    for rule in rules(&surface) {
        let (Scope::Calls(calls), Decision::ByArguments { .. }) = (rule.scope, rule.decision)
        else {
            continue;
        };
        for call in calls {
            let number = u32::try_from(call.number).unwrap();
            for first in &edges {
                for second in &edges {
                    for place in 0..4 {
                        let mut arguments = [0; 6];
                        arguments[place] = u64::from(*first);
                        arguments[place + 1] = u64::from(*second) | 7 << 32;
                        same(surface, &Asked { number, arch: AUDIT_ARCH, arguments });
                    }
                }
            }
        }
    }
}

#[test]
fn other_abis_end_the_process() {
    let kill = Verdict::KillProcess.action();
    for surface in Surface::ALL {
        let program = ours(surface);
        let ia32 = 0x4000_0003;
        let arm = 0x4000_0028;
        for arch in [0, ia32, arm, AUDIT_ARCH ^ 1, u32::MAX, AUDIT_ARCH & 0xffff] {
            for number in (0..600).chain([u32::MAX]) {
                assert_eq!(run(program, &Asked { number, arch, arguments: [0; 6] }), kill);
            }
        }
        if cfg!(target_arch = "x86_64") {
            for number in (0..600).chain([0x3fff_ffff, 0x4000_0000, 0xbfff_fffe]) {
                let asked =
                    Asked { number: 0x4000_0000 + number, arch: AUDIT_ARCH, arguments: [0; 6] };
                assert_eq!(run(program, &asked), kill, "{number:x}");
            }
        }
        // A tracer lets a call fall out so; it must not die of it.
        let dropped = Asked { number: u32::MAX, arch: AUDIT_ARCH, arguments: [0; 6] };
        assert_eq!(run(program, &dropped), Verdict::Refuse(Errno::Enosys).action());
    }
}

/// The most instructions from here to an answer, counting only what can be reached.
fn longest_path(program: &[Instruction]) -> usize {
    let mut from = vec![0; program.len()];
    for at in (0..program.len()).rev() {
        let (code, jt, jf, k) = program[at];
        from[at] = match code {
            0x06 => 1,
            0x05 => 1 + from[at + 1 + k as usize],
            0x20 | 0x54 => 1 + from[at + 1],
            _ => 1 + from[at + 1 + usize::from(jt)].max(from[at + 1 + usize::from(jf)]),
        };
    }
    from[0]
}

#[test]
fn a_program_stays_small_and_its_tree_flat() {
    for surface in Surface::ALL {
        let program = ours(surface);
        println!("{surface:?}: {} instructions, {} deep", program.len(), longest_path(program));
        assert!(program.len() <= 512, "{} instructions", program.len());
        assert!(longest_path(program) <= 48, "{} deep", longest_path(program));
    }
}

fn verdict(surface: Surface, name: &str, arguments: &[u64]) -> Verdict {
    let number = rules(&surface)
        .filter_map(|rule| match rule.scope {
            Scope::Calls(calls) => calls.iter().find(|call| call.name == name),
            Scope::Unlisted | Scope::ForeignAbi => None,
        })
        .map(|call| u32::try_from(call.number).unwrap())
        .next()
        .unwrap();
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    let answer = run(ours(surface), &Asked { number, arch: AUDIT_ARCH, arguments: all });
    let eperm = Verdict::Refuse(Errno::Eperm);
    let possible = [Verdict::Allow, eperm, Verdict::Refuse(Errno::Enosys), Verdict::KillProcess];
    possible.into_iter().find(|one| one.action() == answer).unwrap()
}

#[test]
fn the_surface_decides_about_tracing_and_the_root_directory() {
    let eperm = Verdict::Refuse(Errno::Eperm);
    let base = Surface { tracing: Tracing::Refused, user: User::Ordinary };
    let more = Surface { tracing: Tracing::OwnProcesses, user: User::Root };
    for name in ["ptrace", "process_vm_readv", "process_vm_writev", "chroot"] {
        assert_eq!(verdict(base, name, &[]), eperm);
        assert_eq!(verdict(more, name, &[]), Verdict::Allow);
    }
    for name in ["mount", "setns", "pidfd_getfd", "kcmp", "keyctl", "bpf"] {
        assert_eq!(verdict(more, name, &[]), eperm);
    }
}

#[test]
fn junk_in_a_high_half_helps_nobody() {
    let eperm = Verdict::Refuse(Errno::Eperm);
    for surface in Surface::ALL {
        for junk in [0, 1 << 32, u64::from(u32::MAX) << 32] {
            let refused = |name, arguments: &[u64]| {
                assert_eq!(verdict(surface, name, arguments), eperm, "{name}");
            };
            refused("ioctl", &[0, 0x5412 | junk]);
            refused("clone", &[0x1000_0000 | junk]);
            refused("unshare", &[0x0002_0000 | junk]);
            refused("fchmod", &[3, 0o4755 | junk]);
            refused("openat", &[0, 0, 0o101 | junk, 0o2755 | junk]);
            refused("mknodat", &[0, 0, 0o020_666 | junk]);
            refused("socket", &[2 | junk, 3 | junk, 1]);
            refused("personality", &[0x0040_0000 | junk]);
            refused("prlimit64", &[5 | junk, 0, 1 << 40]);
            refused("prctl", &[35 | junk]);
            refused("shmctl", &[0, 11 | junk]);
            refused("shmget", &[0, 4096, 0o5600 | junk]);
        }
    }
}

#[test]
fn what_is_harmless_passes() {
    for surface in Surface::ALL {
        let allowed = |name, arguments: &[u64]| {
            assert_eq!(verdict(surface, name, arguments), Verdict::Allow, "{name}");
        };
        // Without O_CREAT the mode is whatever lies in the register.
        allowed("openat", &[0, 0, 0, 0o7777]);
        allowed("openat", &[0, 0, 0o200_000, 0o7777]);
        allowed("openat", &[0, 0, 0o102, 0o1777]);
        allowed("fchmod", &[3, 0o1777]);
        allowed("mknodat", &[0, 0, 0o010_666]);
        allowed("mknodat", &[0, 0, 0o644]);
        allowed("clone", &[0x003d_0f00]);
        allowed("clone", &[0x0120_0011]);
        allowed("unshare", &[0x0000_0400]);
        allowed("socket", &[1, 1]);
        allowed("socket", &[10, 0x8_0002, 17]);
        allowed("socket", &[16, 0x8_0003, 0]);
        allowed("prlimit64", &[0, 7, 1 << 40]);
        allowed("prlimit64", &[5, 7, 0]);
        allowed("shmctl", &[0, 0]);
        allowed("shmget", &[0, 4096, 0o1600]);
        allowed("personality", &[0xffff_ffff]);
        allowed("ioctl", &[0, 0x5413]);
    }
}

fn argument() -> impl Strategy<Value = u64> {
    let low = prop_oneof![3 => select(edges()), 1 => any::<u32>()];
    let high = prop_oneof![2 => Just(0), 1 => Just(u32::MAX), 1 => any::<u32>()];
    (low, high).prop_map(|(low, high)| u64::from(high) << 32 | u64::from(low))
}

fn conditional() -> Vec<u32> {
    let with_arguments = rules(&Surface::ALL[0]).filter_map(|rule| match rule {
        super::Rule {
            scope: Scope::Calls(calls), decision: Decision::ByArguments { .. }, ..
        } => Some(calls),
        _ => None,
    });
    with_arguments.flatten().map(|call| u32::try_from(call.number).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4096,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn any_call_gets_the_answer_of_another_compiler(
        surface in select(&Surface::ALL[..]),
        number in prop_oneof![3 => select(conditional()), 1 => 0..600_u32],
        arguments in prop::array::uniform6(argument()),
    ) {
        same(surface, &Asked { number, arch: AUDIT_ARCH, arguments });
    }
}
