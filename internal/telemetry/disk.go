package telemetry

import "github.com/prometheus/client_golang/prometheus"

// Space is how many bytes of a disk are free for us, and how many it has.
type Space struct{ Free, Size uint64 }

// Refused says that a disk, "database" or "media", was full when something should be written.
func (w *Watch) Refused(disk string) {
	if w != nil {
		w.metrics.refusals.WithLabelValues(disk).Inc()
	}
}

// Disks adds the disks that this machine can see, by what lies on them, to the metrics. They
// are looked at when somebody asks.
func (w *Watch) Disks(look func() map[string]Space) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, []string{"disk"}, nil) }
	w.registry.MustRegister(&disks{look: look,
		free: desc("autopost_disk_free_bytes", "Room on the disk of the media folder, and of a private database."),
		size: desc("autopost_disk_size_bytes", "Size of the disk of the media folder, and of a private database."),
	})
}

type disks struct {
	look       func() map[string]Space
	free, size *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (d *disks) Describe(to chan<- *prometheus.Desc) {
	to <- d.free
	to <- d.size
}

// Collect implements prometheus.Collector.
func (d *disks) Collect(to chan<- prometheus.Metric) {
	for name, space := range d.look() {
		to <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(space.Free), name)
		to <- prometheus.MustNewConstMetric(d.size, prometheus.GaugeValue, float64(space.Size), name)
	}
}
