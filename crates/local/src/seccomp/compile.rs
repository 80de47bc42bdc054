//! From the table to a program for the kernel.
//!
//! All numbers from 0 to the largest are cut into spans of equal decision, and the spans become a
//! balanced tree of comparisons with the decisions at its leaves. The kernel has no loops and no
//! jumps backward, and a conditional jump reaches 255 instructions.

use super::gate;
use super::native::{AUDIT_ARCH, FOREIGN_FROM};
use super::rule::{Clause, Decision, Rule, Scope, Test, Verdict};
use super::surface::Surface;
use super::table::rules;

/// One instruction as the kernel takes it: code, jump if true, jump if false, operand.
pub type Instruction = (u16, u8, u8, u32);

/// Why the table is no program. None of these depends on anything but the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// Two rows decide about one call.
    #[error("compile the system call filter: {name} is listed twice")]
    CallTwice {
        /// The later one.
        name: &'static str,
    },
    /// A number that no call of the native ABI can have.
    #[error("compile the system call filter: {name} has an impossible number")]
    NumberOutOfRange {
        /// Of which call.
        name: &'static str,
    },
    /// A row has more conditions than a conditional jump can leap over.
    #[error("compile the system call filter: a jump is too far")]
    JumpTooFar,
    /// The kernel takes no more than 4096 instructions.
    #[error("compile the system call filter: {length} instructions are too many")]
    TooLong {
        /// How many there are.
        length: usize,
    },
}

/// The filter of this surface.
///
/// It does nothing by itself: the kernel takes it in the last step of a plan.
pub fn program(surface: &Surface) -> Result<Vec<Instruction>, CompileError> {
    compile(rules(surface))
}

/// The filter of a gate.
pub fn gate_program() -> Result<Vec<Instruction>, CompileError> {
    compile(gate::rules())
}

/// The filter that these rows are.
fn compile(rules: impl Iterator<Item = Rule>) -> Result<Vec<Instruction>, CompileError> {
    let mut program = vec![
        load(ARCHITECTURE),
        (JUMP_IF_EQUAL, 1, 0, AUDIT_ARCH),
        answer(Verdict::KillProcess),
        load(NUMBER),
    ];
    program.reserve(MOST_CALLS);
    tree(&spans(rules)?, &mut program)?;
    if program.len() > LONGEST {
        return Err(CompileError::TooLong { length: program.len() });
    }
    Ok(program)
}

/// The kernel's `BPF_MAXINSNS`.
const LONGEST: usize = 4096;

const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP: u16 = 0x05;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
const JUMP_IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Offsets in the kernel's `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

/// All numbers from `first` until the next span's have this decision.
struct Span {
    first: u32,
    decision: Decision,
}

/// Cuts all numbers into as few spans as there can be. The first begins at 0.
fn spans(rules: impl Iterator<Item = Rule>) -> Result<Vec<Span>, CompileError> {
    let mut unlisted = Decision::Always(Verdict::KillProcess);
    let mut foreign = unlisted;
    let mut listed = Vec::with_capacity(MOST_CALLS);
    for rule in rules {
        match rule.scope {
            Scope::Unlisted => unlisted = rule.decision,
            Scope::ForeignAbi => foreign = rule.decision,
            Scope::Calls(calls) => {
                for call in calls {
                    let number = u32::try_from(call.number)
                        .ok()
                        .filter(|number| *number < FOREIGN_FROM.unwrap_or(u32::MAX))
                        .ok_or(CompileError::NumberOutOfRange { name: call.name })?;
                    listed.push((number, rule.decision, call.name));
                }
            }
        }
    }
    // By place, because what is listed is large, and moving it took longer than all the rest.
    let mut order: Vec<(u32, usize)> =
        listed.iter().enumerate().map(|(place, (number, ..))| (*number, place)).collect();
    order.sort_unstable();
    let mut spans = Vec::with_capacity(MOST_CALLS);
    spans.push(Span { first: 0, decision: unlisted });
    let mut next = 0;
    for &(number, decision, name) in order.iter().filter_map(|(_, place)| listed.get(*place)) {
        if number < next {
            return Err(CompileError::CallTwice { name });
        }
        cut(&mut spans, next, unlisted);
        cut(&mut spans, number, decision);
        next = number + 1;
    }
    cut(&mut spans, next, unlisted);
    if let Some(first) = FOREIGN_FROM {
        cut(&mut spans, first, foreign);
        // A tracer that lets a call fall out sets the number to -1, which is no call of any ABI.
        cut(&mut spans, u32::MAX, unlisted);
    }
    Ok(spans)
}

/// Room for every call there is.
const MOST_CALLS: usize = 512;

/// From this number on, this is the decision. Numbers come in order; a later cut at one wins.
fn cut(spans: &mut Vec<Span>, first: u32, decision: Decision) {
    if spans.last().is_some_and(|last| last.first == first) {
        spans.pop();
    }
    if spans.last().is_none_or(|last| last.decision != decision) {
        spans.push(Span { first, decision });
    }
}

/// Finds the span of the number that was loaded, in as many steps as its depth.
fn tree(spans: &[Span], code: &mut Vec<Instruction>) -> Result<(), CompileError> {
    let (lower, upper) = spans.split_at(spans.len() / 2);
    let Some(split) = upper.first() else {
        code.push(answer(Verdict::KillProcess));
        return Ok(());
    };
    if lower.is_empty() {
        return leaf(split.decision, code);
    }
    let at = code.len();
    code.push((JUMP_IF_GREATER_OR_EQUAL, 0, 0, split.first));
    tree(lower, code)?;
    let length = code.len() - at - 1;
    let compare = match u8::try_from(length) {
        Ok(distance) => (JUMP_IF_GREATER_OR_EQUAL, distance, 0, split.first),
        Err(_) => {
            let distance = u32::try_from(length).map_err(|_| CompileError::JumpTooFar)?;
            code.insert(at + 1, (JUMP, 0, 0, distance));
            (JUMP_IF_GREATER_OR_EQUAL, 0, 1, split.first)
        }
    };
    if let Some(place) = code.get_mut(at) {
        *place = compare;
    }
    tree(upper, code)
}

/// Answers.
fn leaf(decision: Decision, code: &mut Vec<Instruction>) -> Result<(), CompileError> {
    match decision {
        Decision::Always(verdict) => code.push(answer(verdict)),
        Decision::ByArguments { clauses, otherwise } => {
            for one in clauses {
                code.extend(clause(one)?);
            }
            code.push(answer(otherwise));
        }
    }
    Ok(())
}

/// Answers if all tests hold, else comes out behind its own end.
fn clause(clause: &Clause) -> Result<Vec<Instruction>, CompileError> {
    // Built from its end, since each test must know how far away that is.
    let mut code = vec![answer(clause.verdict)];
    for one in clause.tests.iter().rev() {
        let mut longer = test(one, code.len())?;
        longer.extend(code);
        code = longer;
    }
    Ok(code)
}

/// Comes out behind its own end if it holds, else `rest` instructions farther.
fn test(test: &Test, rest: usize) -> Result<Vec<Instruction>, CompileError> {
    let fail = distance(rest)?;
    match *test {
        Test::OneOf { argument, mask, values } => {
            let mut code = vec![load(low_half(argument))];
            if mask != u32::MAX {
                code.push((AND, 0, 0, mask));
            }
            for (index, value) in values.iter().enumerate() {
                let behind = values.len() - index - 1;
                let otherwise = if behind == 0 { fail } else { 0 };
                code.push((JUMP_IF_EQUAL, distance(behind)?, otherwise, *value));
            }
            Ok(code)
        }
        Test::AnyBit { argument, bits } => {
            Ok(vec![load(low_half(argument)), (JUMP_IF_ANY_BIT, 0, fail, bits)])
        }
        Test::NotNull { argument } => Ok(vec![
            load(high_half(argument)),
            (JUMP_IF_ANY_BIT, 2, 0, u32::MAX),
            load(low_half(argument)),
            (JUMP_IF_ANY_BIT, 0, fail, u32::MAX),
        ]),
    }
}

fn distance(instructions: usize) -> Result<u8, CompileError> {
    u8::try_from(instructions).map_err(|_| CompileError::JumpTooFar)
}

fn load(offset: u32) -> Instruction {
    (LOAD, 0, 0, offset)
}

fn answer(verdict: Verdict) -> Instruction {
    (RETURN, 0, 0, verdict.action())
}

/// Both architectures are little-endian.
fn low_half(argument: u8) -> u32 {
    ARGUMENTS + 8 * u32::from(argument)
}

fn high_half(argument: u8) -> u32 {
    low_half(argument) + 4
}

#[cfg(test)]
mod tests {
    use super::super::oracle::{Asked, run};
    use super::*;
    use crate::seccomp::Errno;

    #[test]
    fn a_tree_too_large_for_short_jumps_finds_every_span() {
        let decisions = [Verdict::Allow, Verdict::Refuse(Errno::Eperm), Verdict::KillProcess];
        let decision = |number: u32| decisions[number as usize % 3];
        let spans: Vec<Span> = (0..2000)
            .map(|first| Span { first, decision: Decision::Always(decision(first)) })
            .collect();
        let mut code = vec![load(NUMBER)];
        tree(&spans, &mut code).unwrap();
        assert!(code.iter().any(|one| one.0 == JUMP));
        for number in (0..2000).chain([u32::MAX]) {
            let answer = run(&code, &Asked { number, arch: 0, arguments: [0; 6] });
            assert_eq!(answer, decision(number.min(1999)).action(), "{number}");
        }
    }

    #[test]
    fn a_row_with_too_many_conditions_is_no_program() {
        let values: &'static [u32] = vec![7; 300].leak();
        let many = Test::OneOf { argument: 0, mask: u32::MAX, values };
        let tests: &'static [Test] = vec![many].leak();
        let row = Clause { tests, when: "never", verdict: Verdict::Allow };
        assert_eq!(clause(&row), Err(CompileError::JumpTooFar));
    }

    #[test]
    fn no_span_says_the_same_as_its_neighbour() {
        for surface in Surface::ALL {
            let spans = spans(rules(&surface)).unwrap();
            println!("{surface:?}: {} spans", spans.len());
            assert_eq!(spans[0].first, 0);
            for pair in spans.windows(2) {
                assert!(pair[0].first < pair[1].first && pair[0].decision != pair[1].decision);
            }
            assert!(spans.len() <= 128);
        }
    }
}
