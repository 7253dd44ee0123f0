/*
 * Clusters of blocks, which reach each other's shared memory; from Hopper on.
 */
#ifndef TSVDI_CUDA_CLUSTER_H
#define TSVDI_CUDA_CLUSTER_H

#include "runtime/device.h"

/* Blocks of a cluster, at most. */
enum { CLUSTER_MOST = 16 };

/* Waits for all blocks of the cluster. */
static __device__ __forceinline__ void
cluster_barrier(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
#endif
}

/* The attribute of a launch with clusters of `blocks` blocks. */
static inline cudaLaunchAttribute
cluster_attribute(int blocks)
{
    cudaLaunchAttribute attribute = {};

    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = (unsigned)blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    return attribute;
}

/* How many clusters of a kernel the device can run at once, launched with `config`, which may have
   more than 8 blocks in a cluster.  0: it cannot run one.  The kernel's code must be for devices
   that have clusters: compiled from PTX for older ones it sends nothing to another block. */
template <typename Kernel>
static inline int
clusters_running(const struct cuda_device *device, Kernel *kernel, const cudaLaunchConfig_t &config)
{
    cudaFuncAttributes code = {};
    int able = 0, clusters = 0;

    (void)cudaDeviceGetAttribute(&able, cudaDevAttrClusterLaunch, device->number);
    if (able && cudaFuncGetAttributes(&code, kernel) == cudaSuccess && code.ptxVersion >= 90) {
        (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
        (void)cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
    }
    (void)cudaGetLastError(); /* an unsupported attribute is no error */
    return clusters;
}

/* Whether the device can run one such cluster. */
template <typename Kernel>
static inline bool
cluster_runs(const struct cuda_device *device, Kernel *kernel, const cudaLaunchConfig_t &config)
{
    return clusters_running(device, kernel, config) > 0;
}

#endif
