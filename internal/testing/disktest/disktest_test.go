package disktest_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"autopost/internal/testing/disktest"
)

func TestDiskIsFilledAndFreed(t *testing.T) {
	disk := disktest.New(t, 4)
	write := func(name string) error { return os.WriteFile(filepath.Join(disk.Dir, name), make([]byte, 4096), 0o600) }
	require.NoError(t, write("before"))
	disk.Fill()
	require.ErrorIs(t, write("while"), syscall.ENOSPC)
	disk.Free()
	require.NoError(t, write("after"))
}
