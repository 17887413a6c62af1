// Package house lets a test run the whole of autopost as its users do: the real
// binary as a child process, against a database of the test's own and simulated
// platforms in the test's process.
//
//	h := house.New(t)
//	h.Workspace("news")
//	h.Endpoint("news", "cms", "the secret")
//	chat := h.Channel("news", house.Channel{ID: "main", Platform: "telegram"})
//	d := h.Serve()
//	h.Push(d, "the secret", `{"text": "Good morning"}`)
//	h.Drained("news")
//
// A test judges by what the receivers logged and by rows, never by what the
// daemon says of itself.
package house
