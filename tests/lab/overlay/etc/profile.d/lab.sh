set -a
. /project/environment
set +a
cd /project

# As lab.service does it: tests need a cgroup of their own, with nobody else in it.
lab_test() {
    systemd-run --quiet --collect --pty --same-dir --slice=-.slice \
        -p Delegate=yes -p OOMPolicy=continue -p TasksMax=infinity -p EnvironmentFile=/project/environment \
        python3 -m pytest -p no:cacheprovider "$@"
}
