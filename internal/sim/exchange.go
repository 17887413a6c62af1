package sim

import (
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Reply is what a platform answers.
type Reply struct {
	Status      int
	ContentType string
	Header      http.Header
	Body        []byte

	// What the log is to know about it.
	Accepted   bool
	MessageIDs []string
	RetryAfter int
	Reason     string
}

// Exchange is one request on its way through a simulator. It belongs to the
// goroutine that serves the request.
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

// Begin takes a request whose headers have been read. e says what is known by
// then; Start is set here.
func (c *Core) Begin(w http.ResponseWriter, r *http.Request, e Entry) *Exchange {
	e.Start = time.Now()
	return &Exchange{core: c, w: w, r: r, entry: e, asked: map[int]bool{}, body: countingReader{Reader: r.Body}}
}

// Cut applies the faults that break the connection before the body has been
// read. When it reports true the exchange is over.
func (x *Exchange) Cut() bool {
	fault, ok := x.core.Faults.match(x.entry, x.asked, true)
	if !ok {
		return false
	}
	x.Arrive()
	if fault.Effect == EffectResetMidBody {
		// Whether the half arrives or the client stops before is all the same here.
		_, _ = io.CopyN(io.Discard, &x.body, max(1, x.r.ContentLength/2))
	}
	x.entry.Fault = fault.Effect
	x.breakOff(true)
	return true
}

// Body is the request's body; what is read of it is counted.
func (x *Exchange) Body() io.Reader { return &x.body }

// Entry is the log entry in the making; fill it in before Arrive.
func (x *Exchange) Entry() *Entry { return &x.entry }

// Note remarks on something that the platform tolerates but a reader of the log should know.
func (x *Exchange) Note(text string) { x.entry.Notes = append(x.entry.Notes, text) }

// Arrive logs the request. Call it once, when all is known that can be known without judging it.
func (x *Exchange) Arrive() {
	x.entry.BytesIn = x.body.n
	x.core.Log.arrive(&x.entry)
}

// Answer applies the faults, or else lets the platform answer: handle does what
// the request asks, refuse puts a fault of EffectStatus into the platform's form.
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
		x.judged(reply)
		x.wait(time.Duration(fault.DelayMS) * time.Millisecond)
		x.write(reply)
	case EffectHang:
		<-x.r.Context().Done()
		x.breakOff(false)
	case EffectAcceptThenDrop:
		x.judged(handle())
		x.breakOff(false)
	case EffectGarbage:
		x.handled(Reply{
			Status: http.StatusBadGateway, ContentType: "text/html",
			Body:   []byte("<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>\n"),
			Reason: "502 Bad Gateway",
		})
	default:
		x.breakOff(true)
	}
}

func (x *Exchange) handled(reply Reply) {
	x.judged(reply)
	x.write(reply)
}

// judged logs what the platform made of the request, before its sender hears of it.
func (x *Exchange) judged(reply Reply) {
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
	// Logged before it leaves the buffer: who has the answer finds it in the log.
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

// breakOff ends the exchange without an answer: with a reset, or as if the
// other side had simply gone.
func (x *Exchange) breakOff(reset bool) {
	x.entry.BytesIn = x.body.n
	x.end()
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		// Not a real connection (a recorder): the server's own way to give up.
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		// Without lingering, closing sends a reset. Should it fail, the close still ends the exchange.
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (x *Exchange) end() {
	x.entry.End = time.Now()
	x.core.Log.update(x.entry)
}
