package outbound_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"autopost/internal/outbound"
	"autopost/internal/testing/wait"
)

// hostileWeb simulates a hostile network: 127.0.0.2 is the attacker's public host, 127.0.0.1 and ::1
// are private addresses that must never be reached, and every name resolves as the attacker wants.
type hostileWeb struct {
	t *testing.T
	// attacker is the address of the public host, private that of the forbidden one; both host:port.
	attacker, private string
	port              string
	tried             int
	reached           atomic.Int64
	answer            http.HandlerFunc
	current           atomic.Pointer[http.HandlerFunc] // for the running request
	timeout           time.Duration                    // of the client; 0 means wait.Bound
	names             map[string][]netip.Addr
}

const (
	// hostileBytes is the limit of the client under test. hostileTime is its timeout where only that ends the request.
	hostileBytes = 1 << 20
	hostileTime  = 300 * time.Millisecond
)

func newHostileWeb(t *testing.T) *hostileWeb {
	t.Helper()
	w := &hostileWeb{t: t, names: map[string][]netip.Addr{}}
	// Prefer an allowed port, so that only the address check protects the private address.
	for _, port := range []string{"8443", "8080", "443", "80", "0"} {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			w.watch(listener)
			w.private = listener.Addr().String()
			break
		}
	}
	_, w.port, _ = net.SplitHostPort(w.private)
	if listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:"+w.port); err == nil {
		w.watch(listener)
	}
	outside, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.2:0")
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { (*w.current.Load())(rw, r) }))
	server.Listener = outside
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	w.attacker = outside.Addr().String()
	return w
}

// watch counts the connections to the forbidden address.
func (w *hostileWeb) watch(listener net.Listener) {
	w.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.reached.Add(1)
			_ = conn.Close()
		}
	}()
}

// LookupNetIP parses numbers like inet_aton, and returns false addresses for names.
func (w *hostileWeb) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if addrs, ok := w.names[host]; ok {
		return addrs, nil
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	if addr, ok := aton(host); ok {
		return []netip.Addr{addr}, nil
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// aton parses the old notations of IPv4.
func aton(host string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(host, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 32) // of the prefixes, C knows only 0 and 0x
		if err != nil || strings.ContainsAny(part, "_oO") || len(part) > 1 && strings.ContainsAny(part[1:2], "bB") {
			return netip.Addr{}, false
		}
		if i < len(parts)-1 {
			value |= n & 0xff << (8 * (3 - i))
		} else {
			value |= n
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}

// get fetches like the daemon and reads the whole body.
func (w *hostileWeb) get(address string) (read int64, err error) {
	w.tried++
	answer := w.answer
	w.current.Store(&answer)
	client := outbound.Guarded(outbound.GuardedConfig{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Timeout: cmp.Or(w.timeout, wait.Bound), MaxBytes: hostileBytes, Resolver: w,
	})
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	return io.Copy(io.Discard, resp.Body)
}

// forbidden are non-public addresses of every kind.
var forbidden = []string{
	"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "168.63.129.16",
	"169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1",
	"198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254",
	"64:ff9b:1::10.0.0.1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::1", "2002:a9fe:a9fe::", "3fff::1", "fc00::1",
	"fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::a9fe:a9fe", "fec0::1", "ff02::1", "ff0e::1",
}

func bracketed(address string) string {
	if strings.Contains(address, ":") {
		return "[" + address + "]"
	}
	return address
}

func (w *hostileWeb) redirects(to string) {
	w.answer = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", to)
		rw.WriteHeader(http.StatusFound)
	}
}

func TestHostileFetches(t *testing.T) {
	t.Setenv("NO_PROXY", "")
	w := newHostileWeb(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, "http://"+w.private)
	}
	t.Run("addresses", w.addresses)
	t.Run("notations", w.notations)
	t.Run("names", w.liesAboutNames)
	t.Run("ports and schemes", w.portsAndSchemes)
	t.Run("redirects", w.badRedirects)
	t.Run("bodies", w.badBodies)
	t.Run("raw answers", w.badAnswers)
	require.Zero(t, w.reached.Load())
	t.Logf("hostile fetches: %d tried, %d reached what is forbidden", w.tried, w.reached.Load())
}

// Each address directly, behind a name, next to a good address, and behind a redirect.
func (w *hostileWeb) addresses(t *testing.T) {
	for _, address := range forbidden {
		target := "http://" + bracketed(address) + ":" + w.port + "/"
		_, err := w.get(target)
		require.ErrorIs(t, err, outbound.ErrBlockedAddress, target)
		w.redirects(target)
		_, err = w.get("http://" + w.attacker + "/")
		require.ErrorIs(t, err, outbound.ErrBlockedAddress, "redirect to %s", target)
		bad, good := netip.MustParseAddr(address), netip.MustParseAddr("127.0.0.2")
		for _, answer := range [][]netip.Addr{{bad}, {good, bad}, {bad, good}} {
			w.names["name.test"] = answer
			_, err = w.get("http://name.test:" + w.port + "/")
			require.ErrorIs(t, err, outbound.ErrBlockedAddress, "%v", answer)
		}
	}
}

func (w *hostileWeb) notations(t *testing.T) {
	for _, host := range []string{
		"2130706433", "0x7f000001", "0x7F.1", "0177.0.0.1", "017700000001", "127.1", "127.0.1", "0", "0x0", "127.0.0.01", "0x7f.0x0.0x0.0x1",
		"127.0.0.1.", "2130706433.", "4294967297", "169.254.43518", "0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "10.1", "192.168.257",
		"１２７.０.０.１", "127。0。0。1", "127．0．0．1", "①②⑦.⓪.⓪.①", "0x⑦f.1",
		"localhost", "LOCALHOST", "localhost.", "ｌｏｃａｌｈｏｓｔ", "localhost.localdomain", "127.0.0.1.nip.test", "xn--n3h.test", "ⓛocalhost", "a..b", "metadata.google.internal",
		"[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:7f00:1]", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[::1%25lo]", "[fe80::1%25lo]", "[::ffff:127.0.0.1%25lo]", "[fe80::1%25]",
		"user:secret@127.0.0.1", "93.184.215.14@127.0.0.1", "127.0.0.1%00.test", "127.0.0.1%2f", "93.184.215.14\\@127.0.0.1", "[127.0.0.1]", "127.0.0.1\t",
	} {
		for _, target := range []string{"http://" + host + ":" + w.port + "/", "http://" + host + "/", "https://" + host + "/"} {
			_, err := w.get(target)
			require.Error(t, err, target)
			w.redirects(target)
			_, err = w.get("http://" + w.attacker + "/")
			require.Error(t, err, "redirect to %s", target)
		}
	}
	for _, target := range []string{"//" + w.private + "/", "/\\" + w.private, "\\\\" + w.private, "http:" + w.private, "http:///" + w.private, "http://", ":" + w.port, "?", "", "%zz"} {
		w.redirects(target)
		_, err := w.get("http://" + w.attacker + "/")
		require.True(t, err != nil || target == "", "redirect to %q", target)
	}
}

// The client dials the address that it checked, even if the name resolves differently later.
func (w *hostileWeb) liesAboutNames(t *testing.T) {
	w.answer = func(rw http.ResponseWriter, _ *http.Request) {
		w.names["rebound.test"] = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		rw.Header().Set("Location", "http://rebound.test:"+w.port+"/")
		rw.Header().Set("Connection", "close")
		rw.WriteHeader(http.StatusFound)
	}
	_, attackerPort, err := net.SplitHostPort(w.attacker)
	require.NoError(t, err)
	for range 5 {
		w.names["rebound.test"] = []netip.Addr{netip.MustParseAddr("127.0.0.2")}
		_, err := w.get("http://rebound.test:" + attackerPort + "/")
		require.ErrorIs(t, err, outbound.ErrBlockedAddress)
	}
	w.names["nowhere.test"] = nil
	_, err = w.get("http://nowhere.test/")
	require.ErrorContains(t, err, "no address")
	w.names["wrong.test"] = []netip.Addr{{}}
	_, err = w.get("http://wrong.test/")
	require.ErrorIs(t, err, outbound.ErrBlockedAddress)
}

func (w *hostileWeb) portsAndSchemes(t *testing.T) {
	w.names["public.test"] = []netip.Addr{netip.MustParseAddr("93.184.215.14")}
	for _, port := range []int{0, 1, 19, 21, 22, 23, 25, 53, 79, 81, 110, 111, 135, 139, 143, 389, 445, 465, 587, 993, 1433, 2049, 2375, 3306, 5432, 5672, 6379, 8000, 8081, 8444, 9000, 9200, 11211, 27017, 65535} {
		_, err := w.get(fmt.Sprintf("http://public.test:%d/", port))
		require.ErrorIs(t, err, outbound.ErrBlockedPort, port)
	}
	for _, port := range []string{"65536", "-1", "99999999", "80a", "０80"} {
		_, err := w.get("http://public.test:" + port + "/")
		require.Error(t, err, port)
	}
	for _, scheme := range []string{"file", "ftp", "gopher", "dict", "ldap", "tftp", "jar", "data", "javascript", "unix", "ws", "HTTPX"} {
		_, err := w.get(scheme + "://" + w.private + "/etc/passwd")
		require.Error(t, err, scheme)
		w.redirects(scheme + "://" + w.private + "/etc/passwd")
		_, err = w.get("http://" + w.attacker + "/")
		require.Error(t, err, "redirect to %s", scheme)
	}
}

func (w *hostileWeb) badRedirects(t *testing.T) {
	w.answer = func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/again?"+strconv.Itoa(rand.Int()), http.StatusTemporaryRedirect)
	}
	_, err := w.get("http://" + w.attacker + "/")
	require.ErrorIs(t, err, outbound.ErrRedirect, "without end")
	w.redirects("http://" + w.attacker + "/")
	_, err = w.get("http://" + w.attacker + "/")
	require.ErrorIs(t, err, outbound.ErrRedirect, "to itself")
	hops := 0
	w.answer = func(rw http.ResponseWriter, r *http.Request) {
		if hops++; hops <= 3 {
			http.Redirect(rw, r, "/next", http.StatusMovedPermanently)
			return
		}
		http.Redirect(rw, r, "http://"+w.private+"/", http.StatusMovedPermanently)
	}
	_, err = w.get("http://" + w.attacker + "/")
	require.Error(t, err, "at the last hop")
	secrets := make(chan http.Header, 1)
	other := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { secrets <- r.Header }))
	other.Listener, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.2:0")
	require.NoError(t, err)
	other.Start()
	t.Cleanup(other.Close)
	w.redirects("http://u:p@" + other.Listener.Addr().String() + "/")
	_, err = w.get("http://reader:" + canary + "@" + w.attacker + "/?key=" + canary)
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(<-secrets), canary, "a credential is sent to its own host only")
}

func packed(times, size int) []byte {
	content := make([]byte, size)
	for range times {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		_, _ = zip.Write(content)
		_ = zip.Close()
		content = b.Bytes()
	}
	return content
}

func (w *hostileWeb) badBodies(t *testing.T) {
	send := func(encoding string, body []byte) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Encoding", encoding)
			_, _ = rw.Write(body)
		}
	}
	endless := func(chunk []byte, flush bool) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := rw.Write(chunk); err != nil {
					return
				}
				if flush {
					_ = http.NewResponseController(rw).Flush()
				}
			}
		}
	}
	drip := func(rw http.ResponseWriter, r *http.Request) {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			_, _ = rw.Write([]byte("x"))
			_ = http.NewResponseController(rw).Flush()
			select {
			case <-ticker.C:
			case <-r.Context().Done():
				return
			}
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error
	}{
		"a bomb":                  {send("gzip", packed(1, 100<<20)), outbound.ErrTooLarge},
		"a bomb within the cap":   {send("x-gzip", packed(1, inflated)), outbound.ErrTooLarge},
		"packed twice":            {send("gzip, gzip", packed(2, 1000)), outbound.ErrEncoding},
		"packed ten times":        {send(strings.Repeat("gzip,", 9)+"gzip", packed(10, 1000)), outbound.ErrEncoding},
		"brotli":                  {send("br", []byte("x")), outbound.ErrEncoding},
		"deflate":                 {send("deflate", []byte("x")), outbound.ErrEncoding},
		"a made-up encoding":      {send(strings.Repeat("z", 1000), []byte("x")), outbound.ErrEncoding},
		"not gzip":                {send("gzip", []byte("<html>this is not packed</html>")), outbound.ErrEncoding},
		"a gzip cut off":          {send("gzip", packed(1, 100_000)[:50]), io.ErrUnexpectedEOF},
		"chunks without end":      {endless(make([]byte, 4096), true), outbound.ErrTooLarge},
		"bytes without end":       {endless(make([]byte, 64<<10), false), outbound.ErrTooLarge},
		"a drip":                  {drip, context.DeadlineExceeded},
		"a false length":          {lying("1099511627776", 10), outbound.ErrTooLarge},
		"less than was announced": {lying("5000", 10), io.ErrUnexpectedEOF},
	} {
		w.answer, w.timeout = c.answer, 0
		if errors.Is(c.want, context.DeadlineExceeded) {
			w.timeout = hostileTime
		}
		read, err := w.get("http://" + w.attacker + "/")
		require.ErrorIs(t, err, c.want, name)
		require.LessOrEqual(t, read, int64(hostileBytes), name)
	}
}

// inflated exceeds the inflation limit but not the size limits.
const inflated = hostileBytes + 10

func lying(length string, body int) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(rw).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: "+length+"\r\n\r\n"+strings.Repeat("x", body))
		_ = conn.Close()
	}
}

// Answers that are not HTTP, or never end. Only the client ends such a request.
func (w *hostileWeb) badAnswers(t *testing.T) {
	w.timeout = hostileTime
	raw := func(write func(io.Writer) error) {
		w.answer = func(rw http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(rw).Hijack()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_ = write(conn)
		}
	}
	endlessly := func(start, more string) func(io.Writer) error {
		return func(c io.Writer) error {
			_, err := io.WriteString(c, start)
			for err == nil {
				_, err = io.WriteString(c, more)
			}
			return err
		}
	}
	once := func(text string) func(io.Writer) error {
		return func(c io.Writer) error {
			_, err := io.WriteString(c, text)
			return err
		}
	}
	for name, write := range map[string]func(io.Writer) error{
		"headers without end":         endlessly("HTTP/1.1 200 OK\r\n", "X-A: "+strings.Repeat("a", 1000)+"\r\n"),
		"one header without end":      endlessly("HTTP/1.1 200 OK\r\nX-A: ", strings.Repeat("a", 1000)),
		"a status without end":        endlessly("HTTP/1.1 200 ", strings.Repeat("O", 1000)),
		"hints without end":           endlessly("", "HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n"),
		"trailers without end":        endlessly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n0\r\n", "X: "+strings.Repeat("a", 1000)+"\r\n"),
		"an endless size of a chunk":  endlessly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "0"),
		"two lengths":                 once("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx"),
		"a negative length":           once("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nxx"),
		"a length beyond all numbers": once("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nxx"),
		"a chunk beyond all numbers":  once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx"),
		"no HTTP":                     once("SSH-2.0-OpenSSH_9.6\r\n"),
		"nothing":                     once(""),
		"silence": func(c io.Writer) error {
			_, err := io.Copy(io.Discard, c.(io.Reader)) // until the client disconnects
			return err
		},
	} {
		raw(write)
		_, err := w.get("http://" + w.attacker + "/")
		require.Error(t, err, name)
	}
}

// The client never resolves a number that is not a plain address, and dials only addresses that the
// resolver returned.
func FuzzGuardedURL(f *testing.F) {
	for _, seed := range []string{"http://127.1/", "http://0x7f.1:80/", "https://[::1%25lo]/", "http://１２７.１/", "http://a@b/", "http://1.2.3.4./", "http://example.com:8080/x"} {
		f.Add(seed)
	}
	asked := errors.New("asked")
	f.Fuzz(func(t *testing.T, address string) {
		u, err := url.Parse(address)
		if err != nil {
			return
		}
		client := outbound.Guarded(outbound.GuardedConfig{Timeout: 5 * time.Second, Resolver: resolverOf(func(host string) ([]netip.Addr, error) {
			if _, err := netip.ParseAddr(host); err != nil {
				if addr, ok := aton(host); ok {
					t.Errorf("%q leads to %q, which some resolvers read as %s", address, host, addr)
				}
			}
			return nil, asked
		})})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			return
		}
		if _, err := client.Do(req); err == nil {
			t.Errorf("%q was answered", u.Host)
		}
	})
}

type resolverOf func(host string) ([]netip.Addr, error)

func (f resolverOf) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return f(host)
}
