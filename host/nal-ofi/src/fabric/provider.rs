//! Which of libfabric's providers to use, and what it asks of its users.

use super::library::Library;
use crate::error::OpenError;
use crate::sys;
use std::ffi::{CStr, CString};
use std::net::Ipv4Addr;
use std::ptr;

/// A provider with an address of this process, ready to be opened.
pub(crate) struct Provider {
    library: &'static Library,
    info: *mut sys::Info,
}

/// What a provider asks for and offers, read once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// Peers' addresses are their IPv4 addresses and ports.
    pub(crate) by_socket: bool,
    /// Bytes that can be sent without keeping them.
    pub(crate) inject: usize,
    /// Operations that may be under way.
    pub(crate) sends: usize,
    pub(crate) receives: usize,
    /// The longest message or read.
    pub(crate) most: u64,
    /// Peers' addresses are never forgotten. Provider shm leads answers of the one that is
    /// inserted next astray (libfabric 1.17); it has room for 256 names.
    pub(crate) keeps_names: bool,
    /// What was begun with a peer ends when its address is removed. ofi_rxd goes on
    /// reading and filling memory for it (libfabric 1.17), and over shm peers copy by
    /// themselves.
    pub(crate) cancels_reads: bool,
    /// Transfers move on only while the completion queue is read.
    pub(crate) moves_when_polled: bool,
    pub(crate) registration: Registration,
}

/// How memory has to be registered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    /// One's own buffers too.
    pub(crate) local: bool,
    /// Peers name memory by its address, not by its place in what is registered.
    pub(crate) by_address: bool,
    /// Pages are held as they are now: what is mapped there later isn't seen.
    pub(crate) pinned: bool,
    /// The provider chooses the keys.
    pub(crate) chosen_keys: bool,
    /// It belongs to an endpoint.
    pub(crate) with_endpoint: bool,
    /// Bytes of a key.
    pub(crate) key_bytes: usize,
}

/// A process's own address, as far as it is chosen by us.
#[derive(Clone, Copy)]
pub(crate) struct Socket {
    pub(crate) node: Ipv4Addr,
    pub(crate) port: Option<u16>,
}

impl Provider {
    /// The provider by that name, or the best that libfabric finds: bound to that
    /// socket where its addresses are sockets, else with an address of its own
    /// making.
    pub(crate) fn choose(
        library: &'static Library,
        name: Option<&str>,
        socket: Socket,
    ) -> Result<Provider, OpenError> {
        let by_name = |name: &str| {
            let bound = Query::new(library, Some(name), Some(socket)).run();
            let unbound = || Query::new(library, Some(name), None).run();
            bound
                .into_iter()
                .next()
                .or_else(|| unbound().into_iter().next())
        };
        let present = names(library);
        let found = match name {
            Some(name) => by_name(name),
            None => present.iter().find_map(|name| by_name(name)),
        };
        found.ok_or_else(|| OpenError::NoProvider {
            wanted: name.map(str::to_owned),
            present,
        })
    }

    fn info(&self) -> &sys::Info {
        // SAFETY: made by libfabric, owned by this value, changed by nobody.
        unsafe { &*self.info }
    }

    pub(crate) fn name(&self) -> String {
        // SAFETY: every info of libfabric's has its attributes.
        let attributes = unsafe { &*self.info().fabric_attr };
        if attributes.prov_name.is_null() {
            return String::new();
        }
        // SAFETY: a string that lives as long as the info.
        let name = unsafe { CStr::from_ptr(attributes.prov_name) };
        name.to_string_lossy().into_owned()
    }

    /// Whether it reaches other nodes.
    fn reaches_others(&self) -> bool {
        let caps = self.info().caps;
        caps & sys::REMOTE_COMM != 0 || caps & sys::LOCAL_COMM == 0
    }

    pub(crate) fn traits(&self) -> Traits {
        let info = self.info();
        // SAFETY: every info of libfabric's has its attributes.
        let sending = unsafe { &*info.tx_attr };
        // SAFETY: as above.
        let receiving = unsafe { &*info.rx_attr };
        // SAFETY: as above.
        let endpoint = unsafe { &*info.ep_attr };
        // SAFETY: as above.
        let domain = unsafe { &*info.domain_attr };
        let asks = |bit: i32| domain.mr_mode & bit != 0;
        Traits {
            by_socket: info.addr_format == sys::SOCKADDR_IN,
            inject: sending.inject_size,
            sends: sending.size,
            receives: receiving.size,
            most: endpoint.max_msg_size as u64,
            keeps_names: self.name() == "shm",
            cancels_reads: self.name() != "shm" && !self.name().contains("ofi_rxd"),
            moves_when_polled: domain.data_progress == sys::PROGRESS_MANUAL,
            registration: Registration {
                local: asks(sys::MR_LOCAL),
                by_address: asks(sys::MR_VIRT_ADDR),
                pinned: asks(sys::MR_ALLOCATED),
                chosen_keys: asks(sys::MR_PROV_KEY),
                with_endpoint: asks(sys::MR_ENDPOINT),
                key_bytes: domain.mr_key_size,
            },
        }
    }

    /// For the calls that open a fabric, a domain and an endpoint.
    pub(super) fn raw(&self) -> *mut sys::Info {
        self.info
    }

    pub(super) fn fabric_attributes(&self) -> *mut sys::FabricAttr {
        self.info().fabric_attr
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        // SAFETY: ours alone, and not used again.
        unsafe { (self.library.free_info)(self.info) };
    }
}

/// The providers that could serve, the best first.
fn names(library: &'static Library) -> Vec<String> {
    let mut names = Vec::new();
    for provider in Query::new(library, None, None).run() {
        let name = provider.name();
        if provider.reaches_others() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// What is asked of `fi_getinfo`.
struct Query {
    library: &'static Library,
    hints: *mut sys::Info,
    node: Option<CString>,
    service: Option<CString>,
}

impl Query {
    fn new(library: &'static Library, name: Option<&str>, socket: Option<Socket>) -> Query {
        // SAFETY: without an argument, fi_dupinfo makes an empty info.
        let hints = unsafe { (library.dup_info)(ptr::null()) };
        assert!(!hints.is_null(), "there is memory for a few hundred bytes");
        let text = |words: String| CString::new(words).ok();
        let query = Query {
            library,
            hints,
            node: socket.and_then(|socket| text(socket.node.to_string())),
            service: socket
                .and_then(|socket| socket.port)
                .and_then(|port| text(port.to_string())),
        };
        query.fill(name, socket.is_some());
        query
    }

    fn fill(&self, name: Option<&str>, by_socket: bool) {
        // SAFETY: made above, ours alone; so are its attributes below.
        let hints = unsafe { &mut *self.hints };
        hints.caps = sys::MSG | sys::RMA;
        hints.mode = sys::CONTEXT | sys::CONTEXT2;
        if by_socket {
            hints.addr_format = sys::SOCKADDR_IN;
        }
        // SAFETY: an empty info has all its attributes.
        let endpoint = unsafe { &mut *hints.ep_attr };
        endpoint.r#type = sys::EP_RDM;
        // SAFETY: as above.
        let domain = unsafe { &mut *hints.domain_attr };
        domain.threading = sys::THREAD_DOMAIN;
        domain.control_progress = sys::PROGRESS_MANUAL;
        domain.data_progress = sys::PROGRESS_MANUAL;
        domain.resource_mgmt = sys::RM_ENABLED;
        domain.mr_mode = sys::MR_LOCAL
            | sys::MR_VIRT_ADDR
            | sys::MR_ALLOCATED
            | sys::MR_PROV_KEY
            | sys::MR_ENDPOINT;
        let Some(name) = name.and_then(|name| CString::new(name).ok()) else {
            return;
        };
        // SAFETY: as above.
        let fabric = unsafe { &mut *hints.fabric_attr };
        // SAFETY: a string; fi_freeinfo frees the copy, which malloc has made.
        fabric.prov_name = unsafe { libc::strdup(name.as_ptr()) };
    }

    fn order(&self, order: u64) {
        // SAFETY: the hints are ours alone; an empty info has all its attributes.
        let sending = unsafe { &mut *(*self.hints).tx_attr };
        sending.msg_order = order;
        // SAFETY: as above.
        let receiving = unsafe { &mut *(*self.hints).rx_attr };
        receiving.msg_order = order;
    }

    /// Those that keep messages in order, and only where there is none, others.
    fn run(&self) -> Vec<Provider> {
        self.order(sys::ORDER_SAS);
        let ordered = self.ask();
        if !ordered.is_empty() {
            return ordered;
        }
        self.order(0);
        self.ask()
    }

    fn ask(&self) -> Vec<Provider> {
        let node = self.node.as_ref().map_or(ptr::null(), |node| node.as_ptr());
        let service = self
            .service
            .as_ref()
            .map_or(ptr::null(), |service| service.as_ptr());
        let flags = if self.node.is_some() { sys::SOURCE } else { 0 };
        let mut list = ptr::null_mut();
        // SAFETY: strings and hints live through the call; the list is written.
        let code = unsafe {
            (self.library.get_info)(sys::VERSION, node, service, flags, self.hints, &mut list)
        };
        if code != 0 || list.is_null() {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut next = list.cast_const();
        while !next.is_null() {
            // SAFETY: part of the list, copied with all that belongs to it.
            let info = unsafe { (self.library.dup_info)(next) };
            if !info.is_null() {
                found.push(Provider {
                    library: self.library,
                    info,
                });
            }
            // SAFETY: the list is whole until it is freed below.
            next = unsafe { (*next).next };
        }
        // SAFETY: the list is ours, and isn't used again.
        unsafe { (self.library.free_info)(list) };
        found
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        // SAFETY: ours alone, and not used again.
        unsafe { (self.library.free_info)(self.hints) };
    }
}

/// Has the verbs provider prefer extended reliable connections, unless the user has
/// said otherwise. To be called before libfabric is first asked for providers.
pub(crate) fn prefer_extended_connections() {
    const NAME: &str = "FI_VERBS_PREFER_XRC";
    if std::env::var_os(NAME).is_none() {
        // SAFETY: libfabric takes its settings from the environment alone. This is
        // done once, while the interface is opened, where other threads of the
        // program must not change or read the environment by C functions.
        unsafe { std::env::set_var(NAME, "1") };
    }
}
