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
    hotplug: bool,
    /// Requests a second at most.
    limit: Option<u32>,
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
            hotplug: true,
            limit: None,
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

    /// Has it complete no more than so many requests a second.
    pub(crate) fn throttled(mut self, requests: u32) -> Self {
        self.limit = Some(requests);
        self
    }

    /// Puts the controller behind a port of its own, so that it can be unplugged.
    pub(crate) fn behind_port(mut self) -> Self {
        self.port = true;
        self
    }

    /// Does the same, where native hotplug has no say, and where a link that was reset is used again
    /// without its own word for it: this emulator never says that a link is active then.
    pub(crate) fn soldered(self) -> Self {
        Self {
            hotplug: false,
            ..self.behind_port()
        }
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
        let mut words = Vec::new();
        if let Some(requests) = self.limit {
            let group = self.group();
            words.push("-object".into());
            words.push(format!("throttle-group,id={group},x-iops-total={requests}"));
        }
        words.push("-blockdev".into());
        words.push(self.blockdev().to_string());
        if self.port {
            let port = self.port_id();
            let number = index + 1;
            words.push("-device".into());
            let hotplug = if self.hotplug {
                ""
            } else {
                ",hotplug=off,x-speed=5"
            };
            words.push(format!(
                "pcie-root-port,id={port},chassis={number},slot={number}{hotplug}"
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

    fn group(&self) -> String {
        format!("{}-group", self.id)
    }

    fn blockdev(&self) -> Value {
        match self.limit {
            None => self.behind(self.node()),
            Some(_) => json!({
                "driver": "throttle", "node-name": self.node(), "throttle-group": self.group(),
                "file": self.behind(format!("{}-file", self.id)),
            }),
        }
    }

    fn behind(&self, node: String) -> Value {
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
        let soldered = Disk::null("d0", 4096).soldered().words(0);
        assert_eq!(soldered[3], format!("{},hotplug=off,x-speed=5", words[3]));
        let device: Value = serde_json::from_str(&words[5]).unwrap();
        assert_eq!(device["max_ioqpairs"], 2);
        assert_eq!(device["mqes"], 3);
        assert_eq!(device["dbcs"], false);
        assert_eq!(device["bus"], "d0-port");
    }

    #[test]
    fn a_throttle_comes_before_the_disk_behind_it() {
        let words = Disk::null("d0", 4096).throttled(20).words(0);
        assert_eq!(words[1], "throttle-group,id=d0-group,x-iops-total=20");
        let node: Value = serde_json::from_str(&words[3]).unwrap();
        assert_eq!(node["node-name"], "d0-node");
        assert_eq!(node["file"]["driver"], "null-co");
    }
}
