// SPDX-License-Identifier: GPL-2.0

//! An emulated NVMe controller with one disk behind it, as QEMU's words.

use serde_json::{
    json,
    Map,
    Value, //
};
use std::path::{
    Path,
    PathBuf, //
};

#[derive(Clone)]
enum Backing {
    Null { bytes: u64 },
    File { path: PathBuf },
}

/// One NVMe controller.
#[derive(Clone)]
pub(crate) struct Disk {
    id: String,
    backing: Backing,
    port: bool,
    properties: Vec<(String, String)>,
}

impl Disk {
    /// A disk which stores nothing and reads zeroes.
    pub(crate) fn null(id: &str, bytes: u64) -> Self {
        Self::new(id, Backing::Null { bytes })
    }

    /// A disk whose content is a raw file, which must exist.
    pub(crate) fn file(id: &str, path: &Path) -> Self {
        let path = path.to_path_buf();
        Self::new(id, Backing::File { path })
    }

    fn new(id: &str, backing: Backing) -> Self {
        Self {
            id: id.to_owned(),
            backing,
            port: false,
            properties: Vec::new(),
        }
    }

    /// Sets any property of the device.
    pub(crate) fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.properties.push((key.to_owned(), value.to_string()));
        self
    }

    /// Number of I/O queue pairs that the controller offers.
    pub(crate) fn ioqpairs(self, pairs: u32) -> Self {
        self.set("max_ioqpairs", pairs)
    }

    /// Puts the controller behind a port of its own, so that it can be unplugged.
    pub(crate) fn behind_port(mut self) -> Self {
        self.port = true;
        self
    }

    /// The name by which monitor commands know the device.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What `device_add` must be told to plug the device in again.
    pub(crate) fn plug(&self) -> Value {
        let mut words = Map::new();
        words.insert("driver".into(), json!("nvme"));
        words.insert("id".into(), json!(self.id));
        words.insert("serial".into(), json!(self.id));
        words.insert("drive".into(), json!(self.node()));
        if self.port {
            words.insert("bus".into(), json!(self.port_id()));
        }
        for (key, value) in &self.properties {
            words.insert(key.clone(), typed(value));
        }
        Value::Object(words)
    }

    /// QEMU's words; `index` makes slot numbers unique.
    pub(crate) fn words(&self, index: usize) -> Vec<String> {
        let mut words = vec!["-blockdev".to_owned(), self.blockdev().to_string()];
        if self.port {
            let port = self.port_id();
            let number = index + 1;
            words.push("-device".into());
            words.push(format!(
                "pcie-root-port,id={port},chassis={number},slot={number}"
            ));
        }
        words.push("-device".into());
        words.push(self.plug().to_string());
        words
    }

    fn node(&self) -> String {
        format!("{}-node", self.id)
    }

    fn port_id(&self) -> String {
        format!("{}-port", self.id)
    }

    fn blockdev(&self) -> Value {
        let node = self.node();
        match &self.backing {
            Backing::Null { bytes } => json!({
                "driver": "null-co", "node-name": node, "size": bytes, "read-zeroes": true,
            }),
            Backing::File { path } => json!({
                "driver": "raw", "node-name": node, "discard": "unmap",
                "file": {"driver": "file", "filename": path},
            }),
        }
    }
}

/// The device's JSON form wants numbers as numbers and switches as booleans.
fn typed(value: &str) -> Value {
    match value {
        "on" => json!(true),
        "off" => json!(false),
        _ => value
            .parse::<u64>()
            .map_or_else(|_| json!(value), |number| json!(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_is_described_in_json() {
        let disk = Disk::null("d0", 4096)
            .ioqpairs(2)
            .set("dbcs", "off")
            .set("mqes", 3)
            .behind_port();
        let words = disk.words(0);
        assert_eq!(words[3], "pcie-root-port,id=d0-port,chassis=1,slot=1");
        let device: Value = serde_json::from_str(&words[5]).unwrap();
        assert_eq!(device["max_ioqpairs"], 2);
        assert_eq!(device["mqes"], 3);
        assert_eq!(device["dbcs"], false);
        assert_eq!(device["bus"], "d0-port");
    }
}
