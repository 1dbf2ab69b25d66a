//! Devices as C sees them.

use cci_sys::{Device, Pci};
use std::ffi::{CString, c_char};

/// The devices with all that their pointers name. Their places don't change.
pub(crate) struct Devices {
    /// Ended by a null pointer.
    list: Vec<*mut Device>,
    #[allow(clippy::vec_box)] // Pointers name the cells, so they must not move.
    cells: Vec<Box<Cell>>,
}

struct Cell {
    public: Device,
    device: lintel_cci_endpoint::Device,
    /// What `public` points to.
    _texts: Vec<CString>,
    _conf: Vec<*const c_char>,
}

// SAFETY: the pointers name memory that the cells own and nobody changes.
unsafe impl Send for Devices {}

impl Devices {
    pub(crate) fn find() -> Devices {
        let mut cells: Vec<_> = lintel_cci_endpoint::devices()
            .into_iter()
            .map(|device| Box::new(Cell::new(device)))
            .collect();
        let pointers = cells.iter_mut().map(|cell| &raw mut cell.public);
        let list = pointers.chain([std::ptr::null_mut()]).collect();
        Devices { list, cells }
    }

    pub(crate) fn list(&mut self) -> *mut *mut Device {
        self.list.as_mut_ptr()
    }

    /// The device with its pointer; the first one for null.
    pub(crate) fn get(
        &self,
        device: *mut Device,
    ) -> Option<(*mut Device, &lintel_cci_endpoint::Device)> {
        let wanted = match device.is_null() {
            true => *self.list.first()?,
            false => device,
        };
        let at = self.list.iter().position(|it| *it == wanted)?;
        Some((wanted, &self.cells.get(at)?.device))
    }
}

impl Cell {
    fn new(device: lintel_cci_endpoint::Device) -> Cell {
        // What the configuration holds has no zero, for text files' lines don't; if one does,
        // the text ends there.
        let text = |text: &str| {
            let text = text.split('\0').next().unwrap_or_default();
            CString::new(text).expect("it was cut at the first zero")
        };
        let mut texts: Vec<CString> = device.conf.iter().map(|line| text(line)).collect();
        let pointers = texts.iter().map(|line| line.as_ptr());
        let conf: Vec<_> = pointers.chain([std::ptr::null()]).collect();
        let [name, transport, info] = [
            text(&device.name),
            text(device.transport.name()),
            text(&device.info),
        ];
        let public = Device {
            name: name.as_ptr(),
            transport: transport.as_ptr(),
            up: 1,
            info: info.as_ptr(),
            conf_argv: conf.as_ptr(),
            max_send_size: device.max_send,
            rate: 0,
            pci: Pci {
                domain: u32::MAX,
                bus: u32::MAX,
                dev: u32::MAX,
                func: u32::MAX,
            },
        };
        texts.extend([name, transport, info]);
        Cell {
            public,
            device,
            _texts: texts,
            _conf: conf,
        }
    }
}
