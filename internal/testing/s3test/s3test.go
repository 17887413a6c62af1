// Package s3test runs a real S3 server for tests on loopback: versitygw over a folder, pinned in
// tools/s3server and built by make setup.
package s3test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/port"
	"autopost/internal/testing/source"
	"autopost/internal/testing/wait"
)

// Environment holds the variables with which a program signs its requests to the servers of this
// package.
var Environment = []string{"AWS_ACCESS_KEY_ID=s3test", "AWS_SECRET_ACCESS_KEY=s3test-canary-secret", "AWS_EC2_METADATA_DISABLED=true"}

const bucket = "media"

// server returns the path of the program that make setup has built.
func server(t testing.TB) string {
	t.Helper()
	root, err := source.Root()
	require.NoError(t, err)
	path := filepath.Join(root, "bin", "test", "versitygw")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the S3 server of the tests is missing; type: make setup (%v)", err)
	}
	return path
}

// Start runs a server with one empty bucket until the test ends. It returns the bucket's URL for
// gocloud.dev/blob and the folder that contains its objects as files.
func Start(t testing.TB) (url, folder string) {
	t.Helper()
	path := server(t)
	root := t.TempDir()
	folder = filepath.Join(root, "data", bucket)
	require.NoError(t, os.MkdirAll(folder, 0o750))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "attributes"), 0o750))
	address := port.Free(t)
	cmd := exec.Command(path, "--port", address, "--quiet", "posix", //nolint:noctx // the cleanup ends it
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

// Sign lets this process sign its requests until the test ends.
func Sign(t *testing.T) {
	t.Helper()
	for _, variable := range Environment {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

// SignAll lets this process sign its requests until it ends. It is for TestMain of a package whose
// tests run in parallel.
func SignAll() error {
	for _, variable := range Environment {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// ready waits until the server listens.
func ready(t testing.TB, address string, output *bytes.Buffer) {
	t.Helper()
	wait.Until(t, "the S3 server listens", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err == nil {
			require.NoError(t, conn.Close())
		}
		return err == nil
	}, output.String)
}
