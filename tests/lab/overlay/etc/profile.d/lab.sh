set -a
. /project/environment
set +a
cd /project
