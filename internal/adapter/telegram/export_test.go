package telegram

import "time"

// ShortenPauses makes Reconcile wait only briefly, for tests with many messages.
func (a *Adapter) ShortenPauses() {
	a.pauses = pauses{afterCopy: time.Millisecond, afterMiss: time.Millisecond}
}

// RestorePauses undoes ShortenPauses.
func (a *Adapter) RestorePauses() { a.pauses = defaultPauses }
