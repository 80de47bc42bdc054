//! The way out of a sandbox, as far as it is built inside.
//!
//! With redirection every program gets out through the gate without knowing of it: names are answered
//! with addresses that stand for them, and connections are led to the gate whatever address they are
//! for. No variable of a proxy is set then: a program that honours one would reach nothing else by
//! it, and some stop working with servers of the sandbox's own. Where the kernel cannot redirect,
//! these variables are all there is.

use super::Steps;
use cofferdam_core::network::{
    DNS_PORT, HOST_NAME, PROXY_PORT, RESOLVER_ADDRESS, TRANSPARENT_PORT,
};
use cofferdam_core::{GateSocket, NetworkPolicy, Result, Spec};
use cofferdam_guestd::Redirection;
use cofferdam_wire::plan::{Families, Listen, Op, Transport};

/// A way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WayOut {
    /// What may be reached at first.
    pub policy: NetworkPolicy,
    /// What the kernel can do for it.
    pub redirection: Redirection,
}

/// The way out that is wished for, if one is. Tries what the kernel can do only then.
pub fn way_out(spec: &Spec) -> Result<Option<WayOut>> {
    let policy = spec.network_policy()?;
    Ok(policy.map(|policy| WayOut { policy, redirection: Redirection::try_out() }))
}

impl WayOut {
    /// Whether programs need know nothing of it.
    pub fn redirects(&self) -> bool {
        self.redirection.works.is_ok()
    }

    /// What the sockets are that the host is handed, in their order.
    pub fn sockets(&self) -> Vec<GateSocket> {
        self.listeners().into_iter().map(|(socket, _)| socket).collect()
    }

    /// The ports inside that are the gate's, over TCP.
    pub fn ports(&self) -> Vec<u16> {
        let all = self.listeners().into_iter().map(|(_, listen)| listen);
        let mut ports: Vec<u16> =
            all.filter(|listen| listen.transport == Transport::Tcp).map(|l| l.port).collect();
        ports.dedup();
        ports
    }

    fn listeners(&self) -> Vec<(GateSocket, Listen)> {
        use Families::{Both, V4, V6};
        use Transport::{Tcp, Udp};
        let listen = |transport, families, port| Listen { transport, families, port };
        let both = if self.redirection.v6 { Both } else { V4 };
        let mut all = Vec::new();
        if self.redirects() {
            all.push((GateSocket::TransparentV4, listen(Tcp, V4, TRANSPARENT_PORT)));
        }
        if self.redirects() && self.redirection.v6 {
            all.push((GateSocket::TransparentV6, listen(Tcp, V6, TRANSPARENT_PORT)));
        }
        all.push((GateSocket::Proxy, listen(Tcp, both, PROXY_PORT)));
        all.push((GateSocket::DnsUdp, listen(Udp, both, DNS_PORT)));
        all.push((GateSocket::DnsTcp, listen(Tcp, both, DNS_PORT)));
        all
    }

    /// ORDER: once the loopback interface is up, and before the right to change it is given up.
    pub(super) fn steps(&self, steps: &mut Steps) {
        if self.redirects() {
            let why = "programs find a route to any address, which leads back here: there is no other \
                       interface";
            steps.add(Op::LocalRoutes { v6: self.redirection.v6 }, why);
            let redirect = Op::Redirect { transparent: TRANSPARENT_PORT, names: DNS_PORT };
            let why = "programs need no setting: TCP of any address comes to the gate, names are asked \
                       there, and anything else fails at once";
            steps.add(redirect, why);
        }
        let rules = self.policy.allow.iter().map(ToString::to_string).collect();
        let listen = self.listeners().into_iter().map(|(_, listen)| listen).collect();
        let why = "the only way out: the host decides on each connection, and without it nobody \
                   answers";
        steps.add(Op::EgressGate { rules, listen }, why);
    }

    /// What `resolv.conf` says, and why.
    pub(super) fn resolver(&self) -> (String, &'static str) {
        match self.redirects() {
            true => {
                let text = format!("nameserver {RESOLVER_ADDRESS}\n");
                (text, "the gate answers for names that are allowed, whichever address is asked")
            }
            false => (String::new(), "names are resolved by the gate, behind its proxy"),
        }
    }

    /// Variables for programs that honour a proxy.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        if self.redirects() {
            return Vec::new();
        }
        let http = format!("http://127.0.0.1:{PROXY_PORT}");
        let socks = format!("socks5h://127.0.0.1:{PROXY_PORT}");
        let none = "localhost,127.0.0.1,::1".to_owned();
        vec![
            ("HTTP_PROXY", http.clone()),
            ("http_proxy", http.clone()),
            ("HTTPS_PROXY", http.clone()),
            ("https_proxy", http),
            ("ALL_PROXY", socks.clone()),
            ("all_proxy", socks),
            ("NO_PROXY", none.clone()),
            ("no_proxy", none),
        ]
    }

    /// What else is to be known of it.
    pub(super) fn notes(&self) -> Vec<String> {
        let NetworkPolicy { deny, host_ports, ask_ms, .. } = &self.policy;
        let denied = deny.iter().map(|rule| format!("{rule} is denied, whatever allows it"));
        let ports = host_ports.iter().map(|port| {
            format!("port {port} of this host's loopback is reached as {HOST_NAME}:{port}")
        });
        let waits = (*ask_ms > 0)
            .then(|| format!("a connection that is not allowed waits {ask_ms} ms to be allowed"));
        denied.chain(ports).chain(waits).collect()
    }

    /// Why programs have to know of a proxy, if they have to.
    pub(super) fn reason(&self) -> Option<String> {
        let why = self.redirection.works.as_ref().err()?;
        Some(format!(
            "only programs that honour HTTP_PROXY or ALL_PROXY find the way out, for this kernel \
             cannot redirect: {why}"
        ))
    }
}
