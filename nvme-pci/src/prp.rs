// SPDX-License-Identifier: GPL-2.0

//! Physical Region Pages: how a read or write tells the controller where its data lies.
//!
//! # Words
//!
//! - A *PRP* is the address of one controller page ([`CTRL_PAGE`] bytes). Only the first PRP of a
//!   command may carry an offset into its page; only the last page may be used in part.
//! - A command has room for two. The second is the second page if there are exactly two, and the
//!   address of the *PRP list* if there are more.
//! - The list is an array of PRPs that ends with its memory page. If more PRPs are to come than
//!   slots are left, the last slot of the page is a *link*: the address of the next list page. If
//!   the rest fits exactly, the last slot is data.
//!
//! # Shapes
//!
//! ```text
//!     1 PRP          PRP1 = data                  PRP2 = 0
//!     2 PRPs         PRP1 = data                  PRP2 = data
//!     3..=513        PRP1 = data                  PRP2 -> [data; 2..=512]
//!     514..          PRP1 = data                  PRP2 -> [data; 511, link] -> [data; ..]
//! ```
//!
//! The builder gets segments one at a time and never knows whether more follow. So it writes each
//! slot as data, and when a PRP comes for which the page has no room, it moves the last slot's PRP to
//! the next page and puts the link in its place.

use core::iter::successors;

/// Bytes in a controller page: CC.MPS = 0, whatever the page size of the system is.
pub const CTRL_PAGE: usize = 4096;

/// Slots in a list page.
pub const ENTRIES_PER_PAGE: usize = CTRL_PAGE / size_of::<u64>();

/// Bytes of a list of the small class, which lies inside a page and is never chained.
pub const SMALL_LIST: usize = 1024;

/// What a list of the small class always has room for: one PRP of the command is PRP1, and a
/// transfer that starts inside a page touches one page more than its size says.
pub const SMALL_MAX_BYTES: usize = SMALL_LIST / size_of::<u64>() * CTRL_PAGE;

/// The bits of an address that lie inside a controller page.
const OFFSET: u64 = CTRL_PAGE as u64 - 1;

/// The bits that must be clear in every address given to the controller: dwords only.
const UNALIGNED: u64 = 3;

/// How many PRPs, PRP1 included, a transfer of `bytes` can need at the worst offset.
pub const fn max_entries(bytes: usize) -> usize {
    if bytes == 0 {
        return 0;
    }
    bytes.div_ceil(CTRL_PAGE) + 1
}

/// How many list pages a transfer of `bytes` can need at the worst offset.
///
/// The list holds all PRPs but the first. `n` chained pages have room for 511 each and one more,
/// for the last slot of the last page is data.
pub const fn list_pages(bytes: usize) -> usize {
    let listed = max_entries(bytes).saturating_sub(1);
    listed.saturating_sub(1).div_ceil(ENTRIES_PER_PAGE - 1)
}

const _: () = {
    assert!(max_entries(SMALL_MAX_BYTES) - 1 == SMALL_LIST / size_of::<u64>());
    assert!(max_entries(2 << 20) == 513);
    assert!(list_pages(2 << 20) == 1);
};

/// The preallocated list of one request: memory that the controller reads.
///
/// It is either one chunk that lies inside a page, or chunks that are whole pages. Only the latter
/// can be chained, for the controller looks for a link in the last slot of a *page*.
pub trait PrpList {
    /// How many chunks the list has.
    fn pages(&self) -> usize;

    /// How many slots a chunk has: [`ENTRIES_PER_PAGE`], or fewer for a lone chunk.
    fn entries(&self) -> usize;

    /// The address of chunk `page` as the controller sees it; `page` is below [`Self::pages`].
    fn page_dma(&self, page: usize) -> u64;

    /// Stores `value`, little endian, in a slot; `index` is below [`Self::entries`].
    fn set(&mut self, page: usize, index: usize, value: u64);
}

/// The data pointer of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prps {
    /// DPTR.PRP1.
    pub prp1: u64,
    /// DPTR.PRP2: zero, the second page, or the list.
    pub prp2: u64,
    /// How many bytes were described.
    pub bytes: u64,
}

/// Why segments can not be described by PRPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrpError {
    /// There is no segment, or one without bytes.
    Empty,
    /// A segment does not start at a dword.
    Unaligned,
    /// Two segments do not meet at page boundaries: the virtual boundary was not kept.
    Gap,
    /// A segment reaches the end of the address space.
    Overflow,
    /// The list has no room left.
    ListFull,
}

/// A segment that was found fit.
#[derive(Clone, Copy)]
struct Segment {
    addr: u64,
    end: u64,
}

impl Segment {
    fn new(addr: u64, len: u32) -> Result<Self, PrpError> {
        if len == 0 {
            return Err(PrpError::Empty);
        }
        if addr & UNALIGNED != 0 {
            return Err(PrpError::Unaligned);
        }
        let end = addr.checked_add(u64::from(len)).ok_or(PrpError::Overflow)?;
        Ok(Self { addr, end })
    }

    /// The first page's address.
    fn base(self) -> u64 {
        self.addr & !OFFSET
    }

    /// The pages after the first.
    fn rest(self) -> impl Iterator<Item = u64> {
        let page_after = move |page: &u64| {
            page.checked_add(CTRL_PAGE as u64)
                .filter(|next| *next < self.end)
        };
        successors(page_after(&self.base()), page_after)
    }
}

/// Describes a lone segment that needs no list, or nothing: [`Builder`] has the general case, and
/// the reason.
pub fn single(addr: u64, len: u32) -> Option<Prps> {
    let segment = Segment::new(addr, len).ok()?;
    let mut rest = segment.rest();
    let prp2 = rest.next().unwrap_or(0);
    if rest.next().is_some() {
        return None;
    }
    Some(Prps {
        prp1: addr,
        prp2,
        bytes: u64::from(len),
    })
}

/// Where the next PRP goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Prp1,
    Prp2,
    /// To the list, together with the second, which must make room for the list's address.
    NewList,
    List,
}

/// Describes segments, which come one at a time.
///
/// After an error the list holds rubbish, and the command must not be given to the controller.
pub struct Builder<'a, L: PrpList> {
    list: &'a mut L,
    /// Where the last segment ended.
    end: u64,
    bytes: u64,
    next: Place,
    prp1: u64,
    prp2: u64,
    /// The chunk in use, its next free slot, and what the slot before holds.
    page: usize,
    index: usize,
    last: u64,
}

impl<'a, L: PrpList> Builder<'a, L> {
    /// Starts a description that spills into `list`.
    pub fn new(list: &'a mut L) -> Self {
        Self {
            list,
            end: 0,
            bytes: 0,
            next: Place::Prp1,
            prp1: 0,
            prp2: 0,
            page: 0,
            index: 0,
            last: 0,
        }
    }

    /// Adds a segment.
    pub fn push(&mut self, addr: u64, len: u32) -> Result<(), PrpError> {
        let segment = Segment::new(addr, len)?;
        if self.next != Place::Prp1 && (self.end | segment.addr) & OFFSET != 0 {
            return Err(PrpError::Gap);
        }
        self.bytes = self
            .bytes
            .checked_add(u64::from(len))
            .ok_or(PrpError::Overflow)?;
        self.end = segment.end;
        self.add(segment.addr)?;
        segment.rest().try_for_each(|page| self.add(page))
    }

    /// Ends the description.
    pub fn finish(self) -> Result<Prps, PrpError> {
        if self.next == Place::Prp1 {
            return Err(PrpError::Empty);
        }
        Ok(Prps {
            prp1: self.prp1,
            prp2: self.prp2,
            bytes: self.bytes,
        })
    }

    /// Adds a PRP where the command has room for it, else to the list.
    fn add(&mut self, prp: u64) -> Result<(), PrpError> {
        self.next = match self.next {
            Place::Prp1 => {
                self.prp1 = prp;
                Place::Prp2
            }
            Place::Prp2 => {
                self.prp2 = prp;
                Place::NewList
            }
            Place::NewList => {
                self.open(prp)?;
                Place::List
            }
            Place::List => {
                self.append(prp)?;
                Place::List
            }
        };
        Ok(())
    }

    /// Begins the list with the PRP that was the second so far.
    fn open(&mut self, third: u64) -> Result<(), PrpError> {
        if self.list.pages() == 0 {
            return Err(PrpError::ListFull);
        }
        self.append(self.prp2)?;
        self.append(third)?;
        self.prp2 = self.list.page_dma(0);
        Ok(())
    }

    /// Puts a PRP in the next slot.
    fn append(&mut self, prp: u64) -> Result<(), PrpError> {
        if self.index >= self.list.entries().min(ENTRIES_PER_PAGE) {
            self.chain()?;
        }
        self.list.set(self.page, self.index, prp);
        self.index += 1;
        self.last = prp;
        Ok(())
    }

    /// Turns the full chunk's last slot into a link.
    fn chain(&mut self) -> Result<(), PrpError> {
        let next = self.page.saturating_add(1);
        if self.index < ENTRIES_PER_PAGE || next >= self.list.pages() {
            return Err(PrpError::ListFull);
        }
        let link = self.list.page_dma(next);
        self.list.set(self.page, ENTRIES_PER_PAGE - 1, link);
        self.list.set(next, 0, self.last);
        self.page = next;
        self.index = 1;
        Ok(())
    }
}
