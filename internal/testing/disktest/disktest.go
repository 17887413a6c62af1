// Package disktest gives a test its own small disk, a tmpfs that the test can fill.
//
//	disk := disktest.New(t, 64)
//	disk.Fill()
//	disk.Free()
//
// It mounts directly if allowed, else in a user namespace, else by sudo without password. If none of
// these works, the test fails with the reason; it never skips.
package disktest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Disk is a small file system, initially empty. Call its methods on the test's own goroutine.
type Disk struct {
	// Dir is the root folder; every user may write to it.
	Dir string

	t testing.TB
}

// hold mounts the disk, prints the result, and unmounts when its standard input ends. The kernel closes
// that input when the test process ends for any reason.
const hold = `mount -t tmpfs -o "size=$2m,mode=1777" disktest "$1" || exit 1
echo mounted
cat >/dev/null
umount -l "$1"
rmdir "$1" 2>/dev/null || true`

// ways are the methods of mounting, each a command that runs another command.
var ways = [][]string{
	{},
	{"unshare", "--user", "--map-root-user", "--mount"},
	{"sudo", "-n"},
}

// New returns a disk of the given size in MiB. It is removed when the test ends.
func New(t testing.TB, mib int) *Disk {
	t.Helper()
	dir, err := os.MkdirTemp("", "disktest-")
	if err != nil {
		t.Fatalf("disktest: %v", err)
	}
	var refused []error
	for _, way := range ways {
		at, end, err := mount(way, dir, mib)
		if err == nil {
			t.Cleanup(func() {
				end()
				_ = os.Remove(dir) // a mount that is visible to all processes was removed already
			})
			return &Disk{Dir: at, t: t}
		}
		refused = append(refused, err)
	}
	t.Fatalf("disktest: a small disk cannot be mounted; run the tests as root, or allow user namespaces (sysctl user.max_user_namespaces): %v", errors.Join(refused...))
	return nil
}

// mount returns the path at which this process can see the new disk.
func mount(way []string, dir string, mib int) (at string, end func(), err error) {
	args := append(append([]string{}, way...), "/bin/sh", "-c", hold, "disktest", dir, fmt.Sprint(mib))
	var complaint strings.Builder
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it ends with its standard input
	cmd.Dir, cmd.Stderr = "/", &complaint
	// Ctrl-C must end the tests but not this cleanup process.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	end = func() {
		_ = stdin.Close()
		_ = cmd.Wait() // a disk that cannot be unmounted needs no further action
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "mounted\n" {
		end()
		return "", nil, fmt.Errorf("%s: %s", strings.Join(args[:max(1, len(way))], " "), strings.TrimSpace(complaint.String()))
	}
	if len(way) > 0 && way[0] == "unshare" {
		return filepath.Join("/proc", fmt.Sprint(cmd.Process.Pid), "root", dir), end, nil
	}
	return dir, end, nil
}

func (d *Disk) filler() string { return filepath.Join(d.Dir, "filler") }

// Fill uses all free space, to the last byte.
func (d *Disk) Fill() {
	d.t.Helper()
	file, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatalf("disktest: %v", err)
	}
	for size := 1 << 20; size > 0; size /= 2 {
		for err == nil {
			_, err = file.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.t.Fatalf("disktest: %v", err)
		}
		err = nil
	}
	_ = file.Close()
}

// Free releases the space that Fill used.
func (d *Disk) Free() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatalf("disktest: %v", err)
	}
}
