//! A pack of tools, bound to sandboxes.

use crate::context::{CallContext, Watched};
use crate::param::{self, Fault, Param, nearest};
use crate::scope::{Sandboxes, Scope};
use crate::tool::Row;
use crate::{
    Expose, Outcome, PackName, Tool, adk, advice, everruns, fluers, native, openmanus, preamble,
};
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_session::{Session, SessionOrder, SessionReport, Sessions};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

type Work<'c> = Pin<Box<dyn Future<Output = Result<Outcome>> + Send + 'c>>;

/// A pack of tools, bound to sandboxes.
///
/// It holds no sandbox: with [`Scope::Implicit`] it knows which one is its own, and
/// [`Toolbox::close`] removes that. Calls may be made at the same time.
pub struct Toolbox {
    pack: PackName,
    tools: Vec<Tool>,
    sandboxes: Sandboxes,
    ports: Option<Arc<dyn Expose>>,
    notice: Option<Arc<dyn Notice>>,
}

/// Who is told what was called.
#[async_trait::async_trait]
pub trait Notice: Send + Sync {
    /// A tool that may change something was called for this sandbox; without a name for the own one.
    async fn called(&self, tool: &str, sandbox: Option<&str>, is_error: bool);
}

/// A call on its way.
pub(crate) struct Call<'c> {
    pub(crate) sandboxes: &'c Sandboxes,
    /// The sandbox that it names.
    pub(crate) sandbox: Option<String>,
    /// Who shows ports to the user, if somebody does.
    pub(crate) ports: Option<&'c dyn Expose>,
    /// The rest of its arguments, checked and complete.
    arguments: Value,
    pub(crate) context: &'c Watched,
}

impl Toolbox {
    /// Tools of this pack, on these sessions. What a sandbox that they make may do is what the order
    /// says, and nothing that a model says widens it.
    ///
    /// Sandboxes that have all labels of the order and are of its kind can be named, and no others: by labels a
    /// toolbox is kept to its own. One that ends with another process is never named. With [`Scope::Named`] those
    /// of an owner that is not the local user may be of any kind: they were made within what its server
    /// allows. With [`Scope::Implicit`] the order's name is that of the own sandbox, which is then shared with
    /// whoever names it so, and stays; without a name it is this toolbox's alone.
    pub fn new(pack: PackName, sessions: Sessions, scope: Scope, order: SessionOrder) -> Self {
        let sandboxes = Sandboxes::new(sessions, scope, order);
        Self { pack, tools: tools(pack, &sandboxes, false), sandboxes, ports: None, notice: None }
    }

    /// Shows ports to the user by way of these: there is a tool more for it, where the pack has one.
    #[must_use]
    pub fn exposing(self, ports: Arc<dyn Expose>) -> Self {
        let tools = tools(self.pack, &self.sandboxes, true);
        Self { tools, ports: Some(ports), ..self }
    }

    /// Lets calls name sandboxes of these directories, too, whether they write to them or to a layer: those
    /// that whoever asks may have made by another way. Nothing is made there.
    #[must_use]
    pub fn over(self, directories: &[PathBuf]) -> Self {
        Self { sandboxes: self.sandboxes.over(directories), ..self }
    }

    /// Tells what was called, once it was done.
    #[must_use]
    pub fn noticed(self, notice: Arc<dyn Notice>) -> Self {
        Self { notice: Some(notice), ..self }
    }

    /// The pack.
    pub fn pack(&self) -> PackName {
        self.pack
    }

    /// Which sandbox its calls are about.
    pub fn scope(&self) -> Scope {
        self.sandboxes.scope
    }

    /// The sessions that its sandboxes are among.
    pub fn sessions(&self) -> &Sessions {
        &self.sandboxes.sessions
    }

    /// The tools, in the order in which they are best shown.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// What a model should know of the place that it works in, as text for its system prompt: facts
    /// alone, and what is missing as plainly as what is there.
    ///
    /// Of a sandbox that runs it is what holds there; of one that is not made yet, what was ordered.
    pub async fn preamble(&self) -> String {
        preamble::of(&self.sandboxes).await
    }

    /// Calls a tool. Never fails otherwise than by an outcome that says so.
    pub async fn call(&self, name: &str, arguments: Value, context: CallContext) -> Outcome {
        let mut known = rows(self.pack, self.ports.is_some());
        let Some(row) = known.find(|row| row.name == name) else {
            return self.failed(name, &self.unknown_tool(name));
        };
        match self.prepare(row, arguments) {
            Ok((sandbox, arguments)) => {
                let named = sandbox.clone();
                let outcome = context
                    .watch(async |context| {
                        let sandboxes = &self.sandboxes;
                        let ports = self.ports.as_deref();
                        let call = Call { sandboxes, sandbox, ports, arguments, context };
                        self.carry_out(row.name, call).await
                    })
                    .await;
                if let Some(notice) = self.notice.as_ref().filter(|_| !row.conduct.looks()) {
                    notice.called(row.name, named.as_deref(), outcome.is_error).await;
                }
                outcome.within_limit()
            }
            Err(fault) => self.refused(row.name, fault),
        }
    }

    /// The sandbox of this whole name or id, or the own one, if there is one. Makes and wakes nothing.
    pub async fn sandbox(&self, name: Option<&str>) -> Result<Session> {
        self.sandboxes.there(name).await
    }

    /// The sandboxes that a call may name, the oldest first.
    pub async fn nameable(&self) -> Result<Vec<SessionReport>> {
        self.sandboxes.nameable().await
    }

    /// An error with a hint that whoever has these tools can follow: errors of sessions name what a person
    /// would type. Calls have theirs so already.
    pub fn advised(&self, error: Error) -> Error {
        advice::advised(self.pack, error)
    }

    /// Removes the own sandbox, if there is one and the order gave it no name. Says whether it did.
    ///
    /// One that is being made, also for a call that was dropped, is waited for.
    pub async fn close(&self) -> Result<bool> {
        self.sandboxes.close().await
    }

    /// What is done, with all that was left out; and the sandbox.
    fn prepare(&self, row: &Row, arguments: Value) -> Result<(Option<String>, Value), Fault> {
        // A call without any argument is often one of nothing.
        let arguments =
            if arguments.is_null() { Value::Object(Default::default()) } else { arguments };
        let sandbox = sandbox_parameter(self.pack, self.sandboxes.scope);
        let all: Vec<Param> = sandbox.into_iter().chain(row.params.iter().copied()).collect();
        param::check(&all, &arguments)?;
        let mut arguments = param::complete(row.params, arguments);
        let named = arguments.as_object_mut().and_then(|given| given.remove("sandbox"));
        Ok((named.and_then(|name| name.as_str().map(str::to_owned)), arguments))
    }

    async fn carry_out(&self, name: &str, call: Call<'_>) -> Outcome {
        let done = self.work_of(name, call).await;
        done.unwrap_or_else(|error| self.failed(name, &self.advised(error)))
    }

    /// What a call does, on the heap: whoever polls it would have room for every tool of every pack on the stack.
    fn work_of<'c>(&self, name: &'c str, call: Call<'c>) -> Work<'c> {
        match self.pack {
            PackName::Cofferdam => Box::pin(native::call(name, call)),
            PackName::Everruns => Box::pin(everruns::call(name, call)),
            PackName::Adk => Box::pin(adk::call(name, call)),
            PackName::Fluers => Box::pin(fluers::call(name, call)),
            PackName::Openmanus => Box::pin(openmanus::call(name, call)),
        }
    }

    /// Arguments that cannot be taken, as the pack says it.
    fn refused(&self, tool: &str, fault: Fault) -> Outcome {
        match self.pack {
            PackName::Cofferdam => Outcome::failed(&fault.into()),
            PackName::Everruns => everruns::refused(fault),
            PackName::Adk => adk::refused(tool, fault),
            PackName::Fluers => fluers::refused(fault),
            PackName::Openmanus => openmanus::refused(fault),
        }
    }

    /// An error, as the pack says it.
    fn failed(&self, tool: &str, error: &Error) -> Outcome {
        match self.pack {
            PackName::Cofferdam => Outcome::failed(error),
            PackName::Everruns => everruns::failed(error),
            PackName::Adk => adk::failed(tool, error),
            PackName::Fluers => fluers::failed(error),
            PackName::Openmanus => openmanus::failed(error),
        }
    }

    fn unknown_tool(&self, name: &str) -> Error {
        let short: String = name.chars().take(64).collect();
        let known = || self.tools.iter().map(|tool| tool.name);
        let error = Error::new(ErrorKind::NotFound, format!("there is no tool {short:?}"));
        match nearest(&short, known()) {
            Some(nearest) => error.hint(format!("Did you mean {nearest:?}?")),
            None => error.hint(format!("Use {}.", known().collect::<Vec<_>>().join(", "))),
        }
    }
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("pack", &self.pack).finish_non_exhaustive()
    }
}

impl Call<'_> {
    /// The arguments as the tool's own type.
    pub(crate) fn arguments<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(self.arguments.clone())
            .map_err(|cause| Error::new(ErrorKind::Usage, "read the arguments").source(cause))
            .map_err(|error| error.hint("See what the tool's schema says."))
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.sandbox.as_deref()
    }

    /// Refuses parameters that are not of an action: those that are there, and are not what stands for
    /// one that is left out.
    pub(crate) fn refuse_others(&self, all: &[Param], action: &str, takes: &[&str]) -> Result<()> {
        let said = |param: &&Param| {
            let value = self.arguments.get(param.name);
            value.is_some() && value != param.preset().as_ref()
        };
        let others =
            all.iter().filter(|param| param.name != "action" && !takes.contains(&param.name));
        let Some(other) = others.into_iter().find(said) else { return Ok(()) };
        let what = format!("{} is no parameter of {action}", other.name);
        let hint = match takes {
            [] => format!("Call {action} without parameters."),
            takes => format!("Use {}.", takes.join(", ")),
        };
        Err(Error::new(ErrorKind::Usage, what).hint(hint))
    }
}

/// The tools of a pack, as a model is told of them.
fn tools(pack: PackName, sandboxes: &Sandboxes, shows_ports: bool) -> Vec<Tool> {
    let sandbox = sandbox_parameter(pack, sandboxes.scope);
    let order = sandboxes.order();
    let is_prepared = !order.init.is_empty() || order.manifest.is_some();
    rows(pack, shows_ports).map(|row| row.tool(sandbox, is_prepared)).collect()
}

/// The rows of a pack, as far as there is what they need.
fn rows(pack: PackName, shows_ports: bool) -> impl Iterator<Item = &'static Row> {
    all_rows(pack).iter().filter(move |row| shows_ports || !native::needs_ports(row))
}

pub(crate) fn all_rows(pack: PackName) -> &'static [Row] {
    match pack {
        PackName::Cofferdam => native::ROWS,
        PackName::Everruns => everruns::ROWS,
        PackName::Adk => adk::ROWS,
        PackName::Fluers => fluers::ROWS,
        PackName::Openmanus => openmanus::ROWS,
    }
}

/// The parameter that names a sandbox. The tools of other systems have none where one is implied.
fn sandbox_parameter(pack: PackName, scope: Scope) -> Option<Param> {
    (pack == PackName::Cofferdam || scope == Scope::Named).then(|| scope.parameter())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_call_can_go_to_another_thread() {
        fn sent(_: impl Future + Send + 'static) {}
        fn check(toolbox: Arc<Toolbox>, name: String) {
            sent(async move { toolbox.call(&name, Value::Null, CallContext::new()).await });
        }
        let _ = check;
    }
}
