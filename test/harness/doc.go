// Package harness runs the real program in a test: child processes, a database per test, and
// simulated platforms in the process of the test.
//
//	h := harness.New(t)
//	h.Workspace("news")
//	h.Endpoint("news", "cms", "the secret")
//	chat := h.Channel("news", harness.Channel{ID: "main", Platform: "telegram"})
//	d := h.Serve()
//	h.Push(d, "the secret", `{"text": "Good morning"}`)
//	h.Drained("news")
//
// A test judges by the log of the simulators and by rows, never by the answers of the daemon alone.
package harness
