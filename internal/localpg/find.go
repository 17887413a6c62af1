package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MinMajor is the oldest major version that the schema supports.
const MinMajor = 15

// ErrNoBinaries means that this machine has no usable PostgreSQL. The text names the command that installs one.
var ErrNoBinaries = errors.New(`no usable PostgreSQL found on this machine. Install one:
  Debian, Ubuntu:  sudo apt-get install postgresql
  Fedora:          sudo dnf install postgresql-server postgresql-contrib
  macOS:           brew install postgresql@17
or name the folder of initdb and postgres in AUTOPOST_PG_BIN,
or give the URL of a running server in DATABASE_URL`)

// installation is one set of PostgreSQL programs.
type installation struct {
	bin   string
	major int
}

// search lists the places to search. Its zero value finds nothing.
type search struct {
	pgConfig string
	globs    []string
	path     string
}

// machine returns the search of a real machine. Distributions keep several major versions side by side
// and outside PATH.
func machine() search {
	return search{
		pgConfig: "pg_config",
		globs: []string{
			"/usr/lib/postgresql/*/bin",
			"/usr/pgsql-*/bin",
			"/opt/homebrew/opt/postgresql@*/bin",
			"/usr/local/opt/postgresql@*/bin",
			"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
			"/Applications/Postgres.app/Contents/Versions/*/bin",
		},
		path: os.Getenv("PATH"),
	}
}

// find returns the programs to use: those of binDir if it is given, else the first usable ones. An
// existing cluster (clusterMajor > 0) needs its own major version.
func (s search) find(ctx context.Context, binDir string, clusterMajor int) (installation, error) {
	if binDir != "" {
		found, err := inspect(ctx, binDir)
		if err != nil {
			return installation{}, fmt.Errorf("AUTOPOST_PG_BIN: %w", err)
		}
		return found, fits(found, clusterMajor)
	}
	var refused []error
	for _, dir := range s.candidates(ctx) {
		found, err := inspect(ctx, dir)
		if err == nil {
			err = fits(found, clusterMajor)
		}
		if err == nil {
			return found, nil
		}
		refused = append(refused, err)
	}
	err := ErrNoBinaries
	if clusterMajor > 0 {
		err = fmt.Errorf("the existing data needs PostgreSQL %d: %w", clusterMajor, ErrNoBinaries)
	}
	if len(refused) > 0 {
		err = fmt.Errorf("%w\nlooked at:\n%w", err, errors.Join(refused...))
	}
	return installation{}, err
}

// candidates lists the folders that contain a server, in order of preference, without duplicates.
func (s search) candidates(ctx context.Context) []string {
	var dirs []string
	if s.pgConfig != "" {
		if out, err := exec.CommandContext(ctx, s.pgConfig, "--bindir").Output(); err == nil {
			dirs = append(dirs, strings.TrimSpace(string(out)))
		}
	}
	for _, glob := range s.globs {
		matches, _ := filepath.Glob(glob)
		slices.SortFunc(matches, newestFirst)
		dirs = append(dirs, matches...)
	}
	dirs = append(dirs, filepath.SplitList(s.path)...)
	seen := map[string]bool{}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "postgres"))
		drop := seen[dir] || !filepath.IsAbs(dir) || err != nil
		seen[dir] = true
		return drop
	})
}

// newestFirst orders folders like postgresql@17/bin by their version, highest first.
func newestFirst(a, b string) int {
	return firstNumber(filepath.Base(filepath.Dir(b))) - firstNumber(filepath.Base(filepath.Dir(a)))
}

func firstNumber(s string) int {
	start := strings.IndexAny(s, "0123456789")
	if start < 0 {
		return 0
	}
	end := start
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, _ := strconv.Atoi(s[start:end])
	return n
}

// inspect reads the version of the server in dir.
func inspect(ctx context.Context, dir string) (installation, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode()&0o111 == 0 {
			return installation{}, fmt.Errorf("%s has no program %s", dir, name)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return installation{}, fmt.Errorf("%s: ask the version: %w", dir, err)
	}
	major := firstNumber(string(out))
	if major == 0 {
		return installation{}, fmt.Errorf("%s: unreadable version %q", dir, strings.TrimSpace(string(out)))
	}
	return installation{bin: dir, major: major}, nil
}

func fits(found installation, clusterMajor int) error {
	switch {
	case clusterMajor > 0 && found.major != clusterMajor:
		return fmt.Errorf("%s is PostgreSQL %d, but the existing data was made by version %d and is not changed: "+
			"install PostgreSQL %d, or move the data with pg_dump", found.bin, found.major, clusterMajor, clusterMajor)
	case found.major < MinMajor:
		return fmt.Errorf("%s is PostgreSQL %d; version %d or newer is required", found.bin, found.major, MinMajor)
	}
	return nil
}
