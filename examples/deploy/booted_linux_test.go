package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	// unfit is the exit code where no machine can be made.
	unfit = 77

	// machine is a copy of this one in namespaces of its own, in the folder $1, where systemd is process 1 and starts the
	// script $1/share/try. What is written there stays in memory, but for $1/share.
	machine = `dir=$1
mount -t tmpfs tmpfs "$dir/mnt" || exit 77
mkdir "$dir/mnt/upper" "$dir/mnt/work" "$dir/mnt/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/mnt/upper,workdir=$dir/mnt/work" "$dir/mnt/root" || exit 77
cd "$dir/mnt/root"
mount -t proc proc proc
mount -t sysfs sysfs sys
umount sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 sys/fs/cgroup || exit 77
mount --bind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir share old
mount --bind "$dir/share" share
: >etc/machine-id
printf '[Service]\nType=oneshot\nExecStart=/bin/bash -e /share/try\nStandardOutput=file:/share/out\nStandardError=inherit\nTimeoutStartSec=300\nExecStopPost=/bin/touch /share/ended\n' >etc/systemd/system/try.service
ip link set lo up 2>/dev/null || true
pivot_root . old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'umount -l /old && mount --make-rshared / && exec /lib/systemd/systemd --system --unit=try.service'`

	// enter gives the machine a cgroup, which is its root.
	enter = `mount -t cgroup2 cgroup2 "$1/cgroups" || exit 77
mkdir "$1/cgroups/deploy-$$"
echo $$ >"$1/cgroups/deploy-$$/cgroup.procs"
unshare --mount --propagation private --pid --uts --ipc --net --cgroup --fork --kill-child sh -ec "$2" machine "$1" &
while [ ! -e "$1/share/ended" ] && kill -0 $! 2>/dev/null; do sleep 0.1; done
kill -KILL $! 2>/dev/null || true
code=0
wait $! || code=$?
echo $$ >"$1/cgroups/cgroup.procs"
sleep 0.1
find "$1/cgroups/deploy-$$" -depth -type d -exec rmdir {} ';'
exit $code`
)

// boot has systemd run a script on a machine that has the units, leasectl, a ledger in a file, and the drop-in that
// leasectl-cron.service has for jobs of several users, as $users. It returns what the script wrote.
func boot(t *testing.T, script string) string {
	t.Helper()
	if os.Getuid() != 0 || exec.Command("unshare", "--mount", "--pid", "--cgroup", "--fork", "true").Run() != nil {
		t.Skip("no private namespaces, which root may make")
	}
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		t.Skip("there is no systemd")
	}
	dir := t.TempDir()
	for _, name := range []string{"mnt", "share", "cgroups"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	must(t, os.Link(leasectl(t), filepath.Join(dir, "share/leasectl")))
	for _, name := range units {
		write(t, filepath.Join(dir, "share", name), read(t, filepath.Join("systemd", name)))
	}
	_, users, _ := strings.Cut(read(t, "systemd/leasectl-cron.service"), "#\t[Service]\n")
	users, _, _ = strings.Cut(users, "\n[Unit]")
	write(t, filepath.Join(dir, "share/users"), "[Service]\n"+strings.ReplaceAll(users, "#\t", "")+"\n")
	write(t, filepath.Join(dir, "share/try"), `cp /share/leasectl /usr/bin/ && chmod 0755 /usr/bin/leasectl
cp /share/*.service /etc/systemd/system/
mkdir -p /etc/leasectl && install -d -m 0777 /ledger
echo sqlite:/ledger/leases.db >/etc/leasectl/store && chmod 0600 /etc/leasectl/store
dropin() { mkdir -p "/run/systemd/system/$1.service.d" && cat >"/run/systemd/system/$1.service.d/${2:-ledger}.conf" && systemctl daemon-reload; }
await() { for _ in $(seq 300); do if journalctl -o cat -u "$1" | grep -q -e "$2"; then return; fi; sleep 0.1; done; journalctl -o cat -u "$1"; false; }
for unit in leasectl@ leasectl-cron; do printf '[Service]\nReadWritePaths=/ledger\n' | dropin "$unit"; done
`+script)
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", enter, "enter", dir, machine)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() == unfit {
		t.Skipf("no machine can be made here: %s", out)
	}
	wrote, _ := os.ReadFile(filepath.Join(dir, "share/out"))
	if !strings.HasSuffix(string(wrote), "all is tried\n") {
		t.Fatalf("%v\n%s\nthe script wrote\n%s", err, out, wrote)
	}
	return string(wrote)
}

// The units do what their heads say, as systemd itself starts them.
func TestUnitsUnderSystemd(t *testing.T) {
	t.Parallel()
	wrote := boot(t, `
cat >/etc/leasectl/tick.env <<'end'
LEASECTL_OPTIONS="--every 2s -v"
LEASECTL_COMMAND="/bin/sh -c 'echo as $(id -un) in $(pwd) > mine; cat mine; cat /proc/self/cgroup; sleep 1'"
end
systemctl start leasectl@tick
await leasectl@tick 'guarded by'
await leasectl@tick 'ended by itself'
journalctl -o cat -u leasectl@tick | grep -e 'guarded by' -e '^as ' | sort -u
systemctl stop leasectl@tick
printf '[Service]\nUser=leasectl-tick\n' | dropin leasectl@tick user
rm /ledger/*
systemctl start leasectl@tick
await leasectl@tick '^as leasectl-tick in '
systemctl stop leasectl@tick
rm /ledger/*
dropin leasectl@tick user </share/users
echo LEASECTL_COMMAND='"/bin/sh -c '"'su -s /bin/sh -c id daemon; sleep 1'"'"' >>/etc/leasectl/tick.env
systemctl start leasectl@tick
await leasectl@tick '^uid=1(daemon)' && echo su runs
systemctl stop leasectl@tick

cat >/etc/leasectl/slow.env <<'end'
LEASECTL_OPTIONS="--every 1m --failover-within 20s --stop-grace 4s"
LEASECTL_COMMAND="/bin/sh -c 'trap \"sleep 3; echo tidied up; exit\" TERM; echo begun; sleep 100 & wait'"
end
printf '[Service]\nTimeoutStopSec=1s\n' | dropin leasectl@slow stop
rm /ledger/*
systemctl start leasectl@slow
await leasectl@slow '^begun'
systemctl stop leasectl@slow
await leasectl@slow '^tidied up' && await leasectl@slow ': released at' && echo stops in order

printf 'jobs:\n- {name: job, every: 2s, command: "echo as $(id -un) in $(pwd); touch mine && echo kept"}\n' >/etc/leasectl/jobs.yaml
rm /ledger/*
systemctl start leasectl-cron
await leasectl-cron '^job: kept'
printf 'jobs:\n- {name: job, every: 2s, command: "echo anew"}\n' >/etc/leasectl/jobs.yaml
systemctl reload leasectl-cron
await leasectl-cron '^job: anew' && echo reloaded
systemctl stop leasectl-cron
rm /ledger/*
dropin leasectl-cron users </share/users
printf 'jobs:\n- {name: job, every: 2s, user: daemon, command: "id; sleep 1"}\n' >/etc/leasectl/jobs.yaml
systemctl start leasectl-cron
await leasectl-cron '^job: uid=1(daemon)' && echo users are heeded
systemctl stop leasectl-cron
systemctl list-units --failed --no-legend 'leasectl*'
echo all is tried
`)
	for _, want := range []string{"guarded by cgroup and process tree", "as leasectl in /var/lib/private/leasectl/tick", "su runs", "stops in order", "reloaded", "users are heeded"} {
		if !strings.Contains(wrote, want) {
			t.Errorf("the script wrote %q, want %q", wrote, want)
		}
	}
}
