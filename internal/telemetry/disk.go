package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Space is the free and the total size of a disk, in bytes.
type Space struct{ Free, Size uint64 }

// Refused counts a write that failed because a disk, "database" or "media", was full.
func (r *Recorder) Refused(disk string) {
	if r != nil {
		r.metrics.refusals.WithLabelValues(disk).Inc()
	}
}

// Disks adds disks to the metrics, by their use. Each scrape calls read.
func (r *Recorder) Disks(read func() map[string]Space) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"disk"}, nil) }
	r.registry.MustRegister(&disks{read: read,
		free: desc("autopost_disk_free_bytes", "Free space on the disk of the media folder, and of a private database."),
		size: desc("autopost_disk_size_bytes", "Size of the disk of the media folder, and of a private database."),
	})
}

type disks struct {
	read       func() map[string]Space
	free, size *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (d *disks) Describe(to chan<- *prometheus.Desc) {
	to <- d.free
	to <- d.size
}

// Collect implements prometheus.Collector.
func (d *disks) Collect(to chan<- prometheus.Metric) {
	for name, space := range d.read() {
		to <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(space.Free), name)
		to <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, float64(space.Size), name)
	}
}
