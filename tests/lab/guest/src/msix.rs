// SPDX-License-Identifier: GPL-2.0

//! A device's table of MSI-X vectors, as its configuration space describes it.

/// Where the list of capabilities begins is written here.
const LIST: usize = 0x34;

/// MSI-X among the capabilities.
const ID: u8 = 0x11;

/// Bytes of an entry of the table, and where in one its control word is.
const ENTRY: u64 = 16;
const CONTROL: u64 = 12;

/// Capabilities that fit into a configuration space; a longer list is a loop.
const MOST: usize = 48;

/// A table.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The region that it is in.
    pub bar: u8,
    /// Where it begins there. Unit: bytes.
    pub offset: u64,
    /// Its entries.
    pub entries: u16,
}

impl Table {
    /// Finds the table in the first 256 bytes of a configuration space.
    ///
    /// `None` if the device has none, or what is there makes no sense.
    pub fn find(config: &[u8]) -> Option<Self> {
        let mut at = usize::from(*config.get(LIST)?);
        for _ in 0..MOST {
            let capability = config.get(at..at + 8).filter(|_| at != 0)?;
            if capability[0] == ID {
                return Some(Self::of(capability));
            }
            at = usize::from(capability[1]);
        }
        None
    }

    fn of(capability: &[u8]) -> Self {
        let word = u32::from_le_bytes([capability[4], capability[5], capability[6], capability[7]]);
        let size = u16::from_le_bytes([capability[2], capability[3]]) & 0x7ff;
        Self {
            bar: capability[4] & 7,
            offset: u64::from(word & !7),
            entries: size + 1,
        }
    }

    /// Where the control word of a vector is in the region; its lowest bit masks.
    ///
    /// `None` if there is no such vector.
    pub fn control(&self, vector: u16) -> Option<u64> {
        let exists = vector < self.entries;
        exists.then(|| self.offset + u64::from(vector) * ENTRY + CONTROL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(capabilities: &[(usize, [u8; 8])]) -> Vec<u8> {
        let mut config = vec![0; 256];
        config[LIST] = capabilities.first().map_or(0, |(at, _)| *at as u8);
        for (at, bytes) in capabilities {
            config[*at..at + 8].copy_from_slice(bytes);
        }
        config
    }

    #[test]
    fn the_table_is_found_behind_other_capabilities() {
        let config = config(&[
            (0x40, [0x01, 0x60, 0, 0, 0, 0, 0, 0]),
            (0x60, [0x11, 0x00, 0x40, 0x80, 0x04, 0x20, 0, 0]),
        ]);
        let table = Table::find(&config).unwrap();
        assert_eq!((table.bar, table.offset, table.entries), (4, 0x2000, 65));
        assert_eq!(table.control(1), Some(0x201c));
        assert_eq!(table.control(64), Some(0x240c));
        assert_eq!(table.control(65), None);
    }

    #[test]
    fn what_makes_no_sense_is_no_table() {
        assert_eq!(Table::find(&[]), None);
        assert_eq!(Table::find(&config(&[])), None);
        let circle = config(&[(0x40, [0x01, 0x40, 0, 0, 0, 0, 0, 0])]);
        assert_eq!(Table::find(&circle), None);
        let mut outside = vec![0; 64];
        outside[LIST] = 0xfc;
        assert_eq!(Table::find(&outside), None);
    }
}
