// SPDX-License-Identifier: GPL-2.0
/*
 * Out-of-line copies of the static inline functions that the Rust NVMe driver
 * calls. They live in the driver's module and not among the built-in Rust
 * helpers, because some of them use symbols of nvme-core, which may itself be
 * a module.
 */

#include <linux/blk-mq.h>
#include <linux/blk-mq-dma.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/dma-mapping.h>
#include <linux/io-64-nonatomic-lo-hi.h>
#include <linux/pci.h>

#include "nvme.h"

bool nvme_rust_try_complete_req(struct request *rq, u16 status, u64 result);
bool nvme_rust_add_to_batch(struct request *rq, struct io_comp_batch *iob, bool is_error,
			    void (*complete)(struct io_comp_batch *));
void nvme_rust_start_request(struct request *rq);
struct phys_vec nvme_rust_req_phys_vec(struct request *rq);
bool nvme_rust_rq_dma_unmap(struct request *rq, struct device *dev, struct dma_iova_state *state,
			    size_t len);
bool nvme_rust_use_iova(struct dma_iova_state *state);
int nvme_rust_dma_mapping_error(struct device *dev, dma_addr_t addr);
void nvme_rust_set_min_align_mask(struct device *dev, unsigned int mask);
int nvme_rust_dev_to_node(struct device *dev);
bool nvme_rust_queue_dying(struct request_queue *q);
bool nvme_rust_pci_is_enabled(struct pci_dev *pdev);
bool nvme_rust_pci_channel_offline(struct pci_dev *pdev);
bool nvme_rust_pci_dev_is_disconnected(struct pci_dev *pdev);
u64 nvme_rust_readq(const void __iomem *addr);
void nvme_rust_writeq(u64 value, void __iomem *addr);
unsigned int nvme_rust_num_possible_cpus(void);
void nvme_rust_init_completion(struct completion *done);

bool nvme_rust_try_complete_req(struct request *rq, u16 status, u64 result)
{
	union nvme_result res = { .u64 = cpu_to_le64(result) };

	return nvme_try_complete_req(rq, cpu_to_le16(status), res);
}

bool nvme_rust_add_to_batch(struct request *rq, struct io_comp_batch *iob, bool is_error,
			    void (*complete)(struct io_comp_batch *))
{
	return blk_mq_add_to_batch(rq, iob, is_error, complete);
}

void nvme_rust_start_request(struct request *rq)
{
	nvme_start_request(rq);
}

struct phys_vec nvme_rust_req_phys_vec(struct request *rq)
{
	struct bio_vec bv = req_bvec(rq);

	return (struct phys_vec) { .paddr = bvec_phys(&bv), .len = bv.bv_len };
}

bool nvme_rust_rq_dma_unmap(struct request *rq, struct device *dev, struct dma_iova_state *state,
			    size_t len)
{
	return blk_rq_dma_unmap(rq, dev, state, len, PCI_P2PDMA_MAP_NONE);
}

bool nvme_rust_use_iova(struct dma_iova_state *state)
{
	return dma_use_iova(state);
}

int nvme_rust_dma_mapping_error(struct device *dev, dma_addr_t addr)
{
	return dma_mapping_error(dev, addr);
}

void nvme_rust_set_min_align_mask(struct device *dev, unsigned int mask)
{
	dma_set_min_align_mask(dev, mask);
}

int nvme_rust_dev_to_node(struct device *dev)
{
	return dev_to_node(dev);
}

bool nvme_rust_queue_dying(struct request_queue *q)
{
	return blk_queue_dying(q);
}

bool nvme_rust_pci_is_enabled(struct pci_dev *pdev)
{
	return pci_is_enabled(pdev);
}

bool nvme_rust_pci_channel_offline(struct pci_dev *pdev)
{
	return pci_channel_offline(pdev);
}

bool nvme_rust_pci_dev_is_disconnected(struct pci_dev *pdev)
{
	return pci_dev_is_disconnected(pdev);
}

u64 nvme_rust_readq(const void __iomem *addr)
{
	return lo_hi_readq(addr);
}

void nvme_rust_writeq(u64 value, void __iomem *addr)
{
	lo_hi_writeq(value, addr);
}

unsigned int nvme_rust_num_possible_cpus(void)
{
	return num_possible_cpus();
}

void nvme_rust_init_completion(struct completion *done)
{
	init_completion(done);
}
