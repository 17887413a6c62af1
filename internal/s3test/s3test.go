// Package s3test runs a real S3 server for tests: versitygw over a folder, pinned in
// tools/s3server and built by the go command, on loopback.
package s3test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Environment are the variables by which a program signs its requests to the servers
// of this package.
var Environment = []string{"AWS_ACCESS_KEY_ID=s3test", "AWS_SECRET_ACCESS_KEY=s3test-canary-secret", "AWS_EC2_METADATA_DISABLED=true"}

const (
	bucket       = "media"
	patience     = 30 * time.Second
	buildTimeout = 10 * time.Minute
)

// server is the path of the program, built once for a test process.
var server = sync.OnceValues(func() (string, error) {
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("the source of this package cannot be found")
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
	defer cancel()
	var stderr bytes.Buffer
	tool := exec.CommandContext(ctx, "go", "tool", "-n", "versitygw")
	tool.Dir = filepath.Join(filepath.Dir(here), "..", "..", "tools", "s3server")
	tool.Stderr = &stderr
	out, err := tool.Output()
	if err != nil {
		return "", fmt.Errorf("build the S3 server: %w\n%s", err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
})

// Start runs a server with one empty bucket until the test ends. It returns the
// bucket's URL for gocloud.dev/blob, and the folder where its objects are files.
func Start(t testing.TB) (url, folder string) {
	t.Helper()
	path, err := server()
	require.NoError(t, err)
	root := t.TempDir()
	folder = filepath.Join(root, "data", bucket)
	require.NoError(t, os.MkdirAll(folder, 0o750))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "attributes"), 0o750))
	address := freeAddress(t)
	cmd := exec.Command(path, "--port", address, "--quiet", "posix", //nolint:noctx // the clean-up ends it
		"--sidecar", filepath.Join(root, "attributes"), filepath.Join(root, "data"))
	cmd.Env = []string{"ROOT_ACCESS_KEY=s3test", "ROOT_SECRET_KEY=s3test-canary-secret"}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	ready(t, address, &output)
	return "s3://" + bucket + "?region=us-east-1&endpoint=http://" + address, folder
}

// Sign lets this process sign its requests, until the test ends.
func Sign(t *testing.T) {
	t.Helper()
	for _, variable := range Environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

func freeAddress(t testing.TB) string {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// ready waits until the server listens.
func ready(t testing.TB, address string, output *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", address); err == nil {
			require.NoError(t, conn.Close())
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			require.FailNow(t, "the S3 server did not start", output.String())
		}
	}
}
