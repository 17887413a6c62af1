package sim

import (
	"cmp"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Reply is a platform's answer.
type Reply struct {
	Status      int
	ContentType string
	Header      http.Header
	Body        []byte

	// The fields below are for the log only.
	Accepted   bool
	MessageIDs []string
	RetryAfter int
	Reason     string
}

// Exchange is one request in a simulator. It belongs to the goroutine that serves the request.
type Exchange struct {
	core  *Core
	w     http.ResponseWriter
	r     *http.Request
	entry Entry
	asked map[int]bool
	body  countingReader
}

type countingReader struct {
	io.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// Begin starts the exchange of a request with complete headers. It sets e.Start.
func (c *Core) Begin(w http.ResponseWriter, r *http.Request, e Entry) *Exchange {
	e.Start = time.Now()
	return &Exchange{core: c, w: w, r: r, entry: e, asked: map[int]bool{}, body: countingReader{Reader: r.Body}}
}

// Cut applies the faults that break the connection before the body is read. If it returns true, the
// exchange has ended.
func (x *Exchange) Cut() bool {
	fault, ok := x.core.Faults.match(x.entry, x.asked, true)
	if !ok {
		return false
	}
	x.Arrive()
	if fault.Effect == EffectResetMidBody {
		// The client may stop before it has sent half of the body.
		_, _ = io.CopyN(io.Discard, &x.body, max(1, x.r.ContentLength/2))
	}
	x.entry.Fault = fault.Effect
	x.breakOff(true)
	return true
}

// Body is the request's body. The exchange counts the bytes that are read.
func (x *Exchange) Body() io.Reader { return &x.body }

// Entry returns the log entry. Complete it before Arrive.
func (x *Exchange) Entry() *Entry { return &x.entry }

// Note adds a remark about something that the platform tolerates.
func (x *Exchange) Note(text string) { x.entry.Notes = append(x.entry.Notes, text) }

// Arrive logs the request. Call it once, when the request is parsed but not yet judged.
func (x *Exchange) Arrive() {
	x.entry.BytesIn = x.body.n
	x.core.Log.arrive(&x.entry)
}

// Answer applies the faults. Without a fault it sends handle's reply. refuse converts a fault of
// EffectStatus into the platform's error form.
func (x *Exchange) Answer(handle func() Reply, refuse func(Fault) Reply) {
	fault, faulty := x.core.Faults.match(x.entry, x.asked, false)
	if !faulty {
		x.handled(handle())
		return
	}
	x.entry.Fault = fault.Effect
	switch fault.Effect {
	case EffectStatus:
		x.handled(refuse(fault))
	case EffectSlow:
		reply := handle()
		x.logReply(reply)
		x.wait(time.Duration(fault.DelayMS) * time.Millisecond)
		x.write(reply)
	case EffectHang:
		<-x.r.Context().Done()
		x.breakOff(false)
	case EffectAcceptThenDrop:
		x.logReply(handle())
		x.breakOff(false)
	case EffectGarbage:
		x.handled(proxyPage(cmp.Or(fault.Status, http.StatusBadGateway)))
	default:
		x.breakOff(true)
	}
}

// proxyPage is the answer of a proxy in front of the platform.
func proxyPage(status int) Reply {
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	return Reply{
		Status: status, ContentType: "text/html",
		Body:   []byte("<html><head><title>" + title + "</title></head><body><center><h1>" + title + "</h1></center></body></html>\n"),
		Reason: title,
	}
}

func (x *Exchange) handled(reply Reply) {
	x.logReply(reply)
	x.write(reply)
}

// logReply logs the platform's decision before the sender receives it.
func (x *Exchange) logReply(reply Reply) {
	x.entry.Status = reply.Status
	x.entry.Accepted = reply.Accepted
	x.entry.MessageIDs = reply.MessageIDs
	x.entry.RetryAfter = reply.RetryAfter
	x.entry.Reason = reply.Reason
	x.core.Log.update(x.entry)
}

func (x *Exchange) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
	}
}

func (x *Exchange) write(reply Reply) {
	header := x.w.Header()
	for name, values := range reply.Header {
		header[name] = values
	}
	if reply.ContentType != "" {
		header.Set("Content-Type", reply.ContentType)
	}
	if reply.Status != http.StatusNoContent && reply.Status != http.StatusNotModified {
		header.Set("Content-Length", strconv.Itoa(len(reply.Body)))
	}
	var err error
	if err = x.r.Context().Err(); err == nil {
		x.w.WriteHeader(reply.Status)
		if x.r.Method != http.MethodHead && len(reply.Body) > 0 {
			_, err = x.w.Write(reply.Body)
		}
	}
	// Log first: a client that has the answer must find it in the log.
	x.entry.ReplyDelivered = err == nil
	x.end()
	if err != nil {
		return
	}
	if http.NewResponseController(x.w).Flush() != nil {
		x.entry.ReplyDelivered = false
		x.core.Log.update(x.entry)
	}
}

// breakOff ends the exchange without an answer, by a reset or by closing the connection.
func (x *Exchange) breakOff(reset bool) {
	x.entry.BytesIn = x.body.n
	x.end()
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		// A recorder has no connection; use the server's own abort.
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		// Without lingering, Close sends a reset. If this fails, Close still ends the exchange.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (x *Exchange) end() {
	x.entry.End = time.Now()
	x.core.Log.update(x.entry)
}
