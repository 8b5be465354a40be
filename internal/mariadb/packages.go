package mariadb

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// packageName is a regular expression of apt's: older distributions have the server's version in the name.
const packageName = "^mariadb-server-core(-[0-9.]+)?$"

// unpacked returns the server of the distribution's packages out of the user's cache. The first call downloads and
// unpacks them; others meanwhile, of other processes too, wait for it.
func unpacked(ctx context.Context) (program, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return program{}, err
	}
	cache = filepath.Join(cache, "mailretention", "mariadb-"+distribution())
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return program{}, err
	}
	unlock, err := waitForLock(ctx, filepath.Join(cache, "lock"))
	if err != nil {
		return program{}, err
	}
	defer unlock()
	root := filepath.Join(cache, "root")
	binary := filepath.Join(root, "usr/sbin/mariadbd")
	if p, err := probe(ctx, binary, root); err == nil {
		return p, nil
	}
	if err := unpack(ctx, cache, root); err != nil {
		return program{}, err
	}
	return probe(ctx, binary, root)
}

// distribution tells the packages of one system from those of another that shares the user's home.
func distribution() string {
	release, _ := os.ReadFile("/etc/os-release")
	h := fnv.New32a()
	h.Write(release)
	return fmt.Sprintf("%s-%08x", runtime.GOARCH, h.Sum32())
}

func waitForLock(ctx context.Context, name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := lock(f)
		if err == nil {
			return f.Close, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, errors.Join(err, f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another's download: %w", context.Cause(ctx)), f.Close())
		case <-time.After(pollInterval):
		}
	}
}

// unpack downloads the packages and unpacks them into root, which is there whole or not at all.
func unpack(ctx context.Context, cache, root string) error {
	apt, part := filepath.Join(cache, "apt"), filepath.Join(cache, "part")
	defer os.RemoveAll(apt)
	packages, err := fetch(ctx, apt)
	if err != nil {
		return err
	}
	for _, left := range []string{part, root} { // by a call that was interrupted, or that doesn't run any more
		if err := os.RemoveAll(left); err != nil {
			return err
		}
	}
	for _, name := range packages {
		if err := run(ctx, "dpkg-deb", "--extract", name, part); err != nil {
			return err
		}
	}
	return os.Rename(part, root)
}

// fetch downloads the server's package, and those of its libraries that this machine lacks, into dir, and returns the files.
// apt checks their signatures; with lists and archives of its own it needs no rights and changes nothing.
func fetch(ctx context.Context, dir string) (packages []string, err error) {
	lists, archives := filepath.Join(dir, "lists"), filepath.Join(dir, "archives")
	for _, d := range []string{lists, archives} {
		if err := os.MkdirAll(filepath.Join(d, "partial"), 0o700); err != nil {
			return nil, err
		}
	}
	apt := []string{
		"-qq", "-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + dir, "-o", "Dir::Cache::archives=" + archives,
		"-o", "Debug::NoLocking=true", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3",
	}
	stale := run(ctx, "apt-get", append(apt, "update")...) // may concern another source than ours
	err = run(ctx, "apt-get", append(apt, "install", "--download-only", "--reinstall", "--yes", "--no-install-recommends", packageName)...)
	if err != nil {
		return nil, errors.Join(stale, err)
	}
	return filepath.Glob(filepath.Join(archives, "*.deb"))
}

func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, args[len(args)-1], err, out)
	}
	return nil
}
