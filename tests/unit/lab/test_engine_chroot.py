from sparkctl.lab.engine_chroot import render_inside_script


def test_script_mounts_enters_and_runs_with_nothing_of_this_environment() -> None:
    script = render_inside_script(
        "/cache/my root",
        (("/etc/pip.conf", "/etc/pip.conf", True), ("/cache/models", "/mnt", False)),
        ("/opt/vllm/bin/python", "-c", "print('x')"),
        (("PATH", "/bin"),),
    )
    assert (
        script
        == """\
set -eu
mount --rbind '/cache/my root' '/cache/my root'
cd '/cache/my root'
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmpfs tmp
mount --bind /etc/pip.conf ./etc/pip.conf
mount -o remount,bind,ro ./etc/pip.conf
mount --bind /cache/models ./mnt
exec chroot . /usr/bin/env -i PATH=/bin /opt/vllm/bin/python -c 'print('"'"'x'"'"')'"""
    )
