// Package disktest gives a test a disk of its own, small enough to be filled: a tmpfs.
//
//	disk := disktest.New(t, 64)
//	disk.Fill()
//	disk.Free()
//
// Who may mount does so, anybody else in a user namespace, or by sudo where that asks for
// no password. On a machine that allows none of these the test fails and says so: it never skips.
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

// Disk is a small file system, empty at first. Its methods belong on the test's own goroutine.
type Disk struct {
	// Dir is where it begins; anybody may write there.
	Dir string

	t testing.TB
}

// hold mounts, says so, and unmounts when its standard input ends, which the kernel closes
// with the test however that ends.
const hold = `mount -t tmpfs -o "size=$2m,mode=1777" disktest "$1" || exit 1
echo mounted
cat >/dev/null
umount -l "$1"
rmdir "$1" 2>/dev/null || true`

// ways are those to be let mount, each a command that runs another.
var ways = [][]string{
	{},
	{"unshare", "--user", "--map-root-user", "--mount"},
	{"sudo", "-n"},
}

// New returns a disk of so many MiB. It is gone when the test ends.
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
				_ = os.Remove(dir) // gone already where it was mounted for all to see
			})
			return &Disk{Dir: at, t: t}
		}
		refused = append(refused, err)
	}
	t.Fatalf("disktest: a small disk cannot be mounted; run the tests as root, or allow user namespaces (sysctl user.max_user_namespaces): %v", errors.Join(refused...))
	return nil
}

// mount returns where the new disk can be seen from here.
func mount(way []string, dir string, mib int) (at string, end func(), err error) {
	args := append(append([]string{}, way...), "/bin/sh", "-c", hold, "disktest", dir, fmt.Sprint(mib))
	var complaint strings.Builder
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // it ends with its standard input
	cmd.Dir, cmd.Stderr = "/", &complaint
	// Ctrl-C ends the tests, not the one who cleans up after them.
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
		_ = cmd.Wait() // nothing is left to be done about a disk that cannot be unmounted
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

// Fill takes all the room that is left: not a byte more can be written.
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

// Free gives back the room that Fill took.
func (d *Disk) Free() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatalf("disktest: %v", err)
	}
}
