package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed assets
var files embed.FS

// asset is a file that its address identifies by content.
type asset struct {
	address, kind     string
	plain, compressed []byte
}

// sources lists the files of each asset.
var sources = map[string][]string{
	"app.css":     {"tokens.css", "app.css", "frame.css", "operations.css", "first.css", "compose.css", "post.css", "calendar.css", "decisions.css", "xposts.css", "bot.css"},
	"app.js":      {"app.js", "keys.js", "live.js", "compose.js", "calendar.js"},
	"htmx.js":     {"htmx.js"},
	"icons.svg":   {"icons.svg"},
	"favicon.svg": {"favicon.svg"},
}

var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

// assets are all assets by name, compressed once for the process.
var assets = sync.OnceValue(func() map[string]asset {
	all := map[string]asset{}
	for name, parts := range sources {
		var a asset
		for _, part := range parts {
			text, err := files.ReadFile("assets/" + part)
			if err != nil {
				panic(fmt.Sprintf("read the embedded asset %s: %v", part, err))
			}
			a.plain = append(a.plain, text...)
		}
		if path.Ext(name) == ".css" {
			a.plain = minified(a.plain)
		}
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
		_, _ = w.Write(a.plain)                                    // a buffer accepts everything
		_ = w.Close()
		sum := sha256.Sum256(a.plain)
		extension := path.Ext(name)
		a.address = "/assets/" + strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:6]) + extension
		a.kind, a.compressed = kinds[extension], packed.Bytes()
		all[name] = a
	}
	return all
})

// address returns the address of an asset.
func address(name string) string { return assets()[name].address }

// icon returns the address of a symbol.
func icon(name string) string { return address("icons.svg") + "#" + name }

// serveAsset serves an asset. An address never changes its content.
func (s *server) serveAsset(w http.ResponseWriter, r *http.Request) {
	for _, a := range assets() {
		if a.address != r.URL.Path {
			continue
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Vary", "Accept-Encoding")
		body := a.plain
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body = a.compressed
		}
		_, _ = w.Write(body) // the caller may be gone
		return
	}
	s.notFound(w, r)
}
