/*
 * Stands in for libnvidia-ml.so.1 below the unmodified official bindings: answers from a text file.
 *
 * FAKE_NVML_STATE names the file, read again whenever it was replaced; FAKE_NVML_LOG one that gets the
 * name of each function called. Lines are KEY=VALUE, the last of a key holds, and what has no key is
 * not supported. GPU is 0, 1, ...; MIG instances of it are GPU.m0, GPU.m1, ...
 *
 *   gpus=2                     init=18               delay.FUNCTION=microseconds   err.FUNCTION=code
 *   GPU.err.FUNCTION=code      GPU.lost=1            GPU.KEY=value, the keys as in the functions below
 *   GPU.field.186=u 433000     GPU.field.82=err 3    GPU.proc=C PID BYTES|NA GI CI   (also G and M)
 *   event=GPU TYPE DATA        (a set starts at the end of the list when a GPU is registered)
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef int result;
enum { OK = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10, LOST = 15 };
enum { GPUS = 32, INSTANCES = 8, LINES = 8192, NONE = 0xFFFFFFFF };

typedef struct { int gpu, instance; } device; /* instance -1: the GPU itself */
typedef struct { int first[GPUS]; int registered[GPUS]; int next; } event_set;

typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } process;
typedef struct { unsigned version; int sensor, temperature; } temperature_v1;
typedef struct {
  unsigned id, scope; long long stamp, latency; int type; result code;
  union { double d; unsigned u; unsigned long ul; unsigned long long ull; long long sll; } value;
} field;
typedef struct { char legacy[16]; unsigned domain, bus, dev, id, subsystem; char bus_id[32]; } pci;
typedef struct { device *device; unsigned long long type, data; unsigned gi, ci; } event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *text, *lines[LINES];
static int line_count, clients;
static struct stat seen;
static device devices[GPUS][INSTANCES + 1];

static void load(void) {
  const char *path = getenv("FAKE_NVML_STATE");
  struct stat now;
  if (!path || stat(path, &now) || (now.st_ino == seen.st_ino && now.st_size == seen.st_size &&
                                    !memcmp(&now.st_mtim, &seen.st_mtim, sizeof now.st_mtim)))
    return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  seen = now;
  free(text);
  text = calloc(1, now.st_size + 1);
  size_t size = fread(text, 1, now.st_size, file);
  fclose(file);
  text[size] = 0;
  line_count = 0;
  for (char *line = strtok(text, "\n"); line && line_count < LINES; line = strtok(NULL, "\n"))
    lines[line_count++] = line;
}

static const char *at(int line, const char *key) {
  size_t length = strlen(key);
  return !strncmp(lines[line], key, length) && lines[line][length] == '=' ? lines[line] + length + 1 : NULL;
}

static const char *get(const char *format, ...) {
  char key[160];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(key, sizeof key, format, arguments);
  va_end(arguments);
  for (int i = line_count - 1; i >= 0; i--)
    if (at(i, key)) return at(i, key);
  return NULL;
}

static const char *name_of(const device *d, char *into) {
  sprintf(into, d->instance < 0 ? "%d" : "%d.m%d", d->gpu, d->instance);
  return into;
}

static const char *of(const device *d, const char *key) {
  char name[32];
  return get("%s.%s", name_of(d, name), key);
}

/* What every call goes through; the lock is not held while a call is slow. */
static result enter(const char *function, const device *d) {
  char name[32];
  const char *log = getenv("FAKE_NVML_LOG"), *found;
  pthread_mutex_lock(&lock);
  load();
  if (log) {
    FILE *file = fopen(log, "a");
    if (file) { fprintf(file, "%s\n", function); fclose(file); }
  }
  long delay = (found = get("delay.%s", function)) ? atol(found) : 0;
  result code = clients ? OK : UNINITIALIZED;
  if (!code && (found = get("err.%s", function))) code = atoi(found);
  if (!code && d && (found = get("%s.err.%s", name_of(d, name), function))) code = atoi(found);
  if (!code && d && get("%d.lost", d->gpu)) code = LOST;
  pthread_mutex_unlock(&lock);
  if (delay) usleep(delay);
  return code;
}

static result number(const char *function, const device *d, const char *key, unsigned long long *value) {
  result code = enter(function, d);
  if (code) return code;
  pthread_mutex_lock(&lock);
  const char *found = of(d, key);
  if (found) *value = strtoull(found, NULL, 0);
  pthread_mutex_unlock(&lock);
  return found ? OK : NOT_SUPPORTED;
}

static result word(const char *function, const device *d, const char *key, char *into, unsigned size) {
  result code = enter(function, d);
  if (code) return code;
  pthread_mutex_lock(&lock);
  const char *found = of(d, key);
  if (found) snprintf(into, size, "%s", found);
  pthread_mutex_unlock(&lock);
  return found ? OK : NOT_SUPPORTED;
}

static int count(void) { const char *found = get("gpus"); return found ? atoi(found) : 0; }

result nvmlInitWithFlags(unsigned flags) {
  (void)flags;
  pthread_mutex_lock(&lock);
  load();
  const char *found = get("init"), *slow = get("delay.nvmlInitWithFlags");
  result code = found ? atoi(found) : OK;
  long delay = slow ? atol(slow) : 0;
  if (!code) clients++;
  for (int i = 0; i < GPUS; i++)
    for (int j = 0; j <= INSTANCES; j++) devices[i][j] = (device){i, j - 1};
  pthread_mutex_unlock(&lock);
  if (delay) usleep(delay);
  return code;
}
result nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
result nvmlShutdown(void) {
  result code = enter("nvmlShutdown", NULL);
  if (!code) clients--;
  return code;
}
const char *nvmlErrorString(result code) { (void)code; return "an error"; }

result nvmlSystemGetDriverVersion(char *into, unsigned size) {
  result code = enter("nvmlSystemGetDriverVersion", NULL);
  const char *found = get("driver");
  if (!code) snprintf(into, size, "%s", found ? found : "580.65.06");
  return code;
}
result nvmlDeviceGetCount_v2(unsigned *into) {
  result code = enter("nvmlDeviceGetCount_v2", NULL);
  if (!code) *into = count();
  return code;
}
result nvmlDeviceGetHandleByIndex_v2(unsigned index, device **into) {
  if (index >= GPUS) return INVALID;
  result code = enter("nvmlDeviceGetHandleByIndex_v2", &devices[index][0]);
  if (!code && (int)index >= count()) return INVALID;
  if (!code) *into = &devices[index][0];
  return code;
}
result nvmlDeviceGetUUID(device *d, char *into, unsigned size) { return word(__func__, d, "uuid", into, size); }
result nvmlDeviceGetName(device *d, char *into, unsigned size) { return word(__func__, d, "name", into, size); }
result nvmlDeviceGetPciInfo_v3(device *d, pci *into) {
  memset(into, 0, sizeof *into);
  return word(__func__, d, "bdf", into->bus_id, sizeof into->bus_id);
}

static result fill(const char *function, device *d, unsigned long long *total, unsigned long long *used) {
  result code = number(function, d, "mem_total", total);
  return code ? code : number(function, d, "mem_used", used);
}
result nvmlDeviceGetMemoryInfo(device *d, memory *m) {
  unsigned long long reserved = 0;
  result code = fill(__func__, d, &m->total, &m->used);
  number(__func__, d, "mem_reserved", &reserved);
  m->used += reserved; /* version 1 does not tell them apart */
  m->free = m->total - m->used;
  return code;
}
result nvmlDeviceGetMemoryInfo_v2(device *d, memory_v2 *m) {
  if (m->version != 0x02000028) return 25;
  result code = fill(__func__, d, &m->total, &m->used);
  m->reserved = 0;
  number(__func__, d, "mem_reserved", &m->reserved);
  m->free = m->total - m->used - m->reserved;
  return code;
}

#define UNSIGNED(function, key) \
  result function(device *d, unsigned *into) { \
    unsigned long long value = 0; \
    result code = number(#function, d, key, &value); \
    *into = (unsigned)value; \
    return code; \
  }
#define LONG(function, key) \
  result function(device *d, unsigned long long *into) { return number(#function, d, key, into); }
#define SAMPLED(function, key) \
  result function(device *d, unsigned *into, unsigned *period) { \
    unsigned long long value = 0; \
    result code = number(#function, d, key, &value); \
    *into = (unsigned)value; \
    *period = 167000; \
    return code; \
  }
#define CHOSEN(function, key, kind) \
  result function(device *d, unsigned which, kind *into) { \
    char name[32]; \
    unsigned long long value = 0; \
    sprintf(name, key "%u", which); \
    result code = number(#function, d, name, &value); \
    *into = (kind)value; \
    return code; \
  }
UNSIGNED(nvmlDeviceGetPowerUsage, "power_mw")
UNSIGNED(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
UNSIGNED(nvmlDeviceGetAccountingMode, "acct_mode")
UNSIGNED(nvmlDeviceGetMaxMigDeviceCount, "mig_max")
UNSIGNED(nvmlDeviceGetGpuInstanceId, "gi")
UNSIGNED(nvmlDeviceGetComputeInstanceId, "ci")
LONG(nvmlDeviceGetTotalEnergyConsumption, "energy_mj")
LONG(nvmlDeviceGetCurrentClocksEventReasons, "reasons")
LONG(nvmlDeviceGetCurrentClocksThrottleReasons, "reasons")
LONG(nvmlDeviceGetSupportedEventTypes, "event_types")
SAMPLED(nvmlDeviceGetEncoderUtilization, "util_enc")
SAMPLED(nvmlDeviceGetDecoderUtilization, "util_dec")
CHOSEN(nvmlDeviceGetTemperature, "temp", unsigned)
CHOSEN(nvmlDeviceGetTemperatureThreshold, "threshold", unsigned)
CHOSEN(nvmlDeviceGetClockInfo, "clock", unsigned)

result nvmlDeviceGetTemperatureV(device *d, temperature_v1 *into) {
  unsigned long long value = 0;
  result code = number(__func__, d, "temp0", &value);
  into->temperature = (int)value;
  return code;
}
result nvmlDeviceGetUtilizationRates(device *d, utilization *into) {
  unsigned long long gpu = 0, mem = 0;
  result code = number(__func__, d, "util_gpu", &gpu);
  if (!code) code = number(__func__, d, "util_mem", &mem);
  into->gpu = (unsigned)gpu;
  into->memory = (unsigned)mem;
  return code;
}
result nvmlDeviceGetTotalEccErrors(device *d, unsigned type, unsigned counter, unsigned long long *into) {
  (void)counter;
  return number(__func__, d, type ? "ecc_uncorrected" : "ecc_corrected", into);
}
result nvmlDeviceGetMigMode(device *d, unsigned *current, unsigned *pending) {
  unsigned long long value = 0;
  result code = number(__func__, d, "mig", &value);
  *current = *pending = (unsigned)value;
  return code;
}
result nvmlDeviceGetMigDeviceHandleByIndex(device *d, unsigned index, device **into) {
  if (index >= INSTANCES) return INVALID;
  device *instance = &devices[d->gpu][index + 1];
  char name[64];
  result code = word(__func__, instance, "uuid", name, sizeof name);
  if (!code) *into = instance;
  return code == NOT_SUPPORTED ? NOT_FOUND : code;
}

result nvmlDeviceGetFieldValues(device *d, int wanted, field *fields) {
  result code = enter(__func__, d);
  if (code) return code;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < wanted; i++) {
    char key[64], kind[8] = "";
    unsigned long long value = 0;
    sprintf(key, "field.%u", fields[i].id);
    const char *found = of(d, key);
    if (found) sscanf(found, "%7s %llu", kind, &value);
    fields[i].code = !found ? NOT_SUPPORTED : !strcmp(kind, "err") ? (int)value : OK;
    fields[i].type = !strcmp(kind, "u") ? 1 : 3;
    if (fields[i].type == 1) fields[i].value.u = (unsigned)value;
    else fields[i].value.ull = value;
  }
  pthread_mutex_unlock(&lock);
  return OK;
}

static result processes(const char *function, device *d, char kind, unsigned *size, process *into) {
  result code = enter(function, d);
  if (code) return code;
  char key[48], name[32];
  unsigned found = 0;
  pthread_mutex_lock(&lock);
  sprintf(key, "%d.proc", d->gpu);
  long gi = of(d, "gi") ? atol(of(d, "gi")) : -1;
  (void)name;
  for (int i = 0; i < line_count; i++) {
    const char *value = at(i, key);
    char its_kind, used[32];
    process one = {0, 0, NONE, NONE};
    if (!value || sscanf(value, "%c %u %31s %u %u", &its_kind, &one.pid, used, &one.gi, &one.ci) < 3) continue;
    if (its_kind != kind || (d->instance >= 0 && (long)one.gi != gi)) continue;
    one.used = strcmp(used, "NA") ? strtoull(used, NULL, 0) : ~0ULL;
    if (into && found < *size) into[found] = one;
    found++;
  }
  pthread_mutex_unlock(&lock);
  int fits = found <= *size;
  *size = found;
  return !found ? OK : into && fits ? OK : TOO_SMALL;
}
#define PROCESSES(name, kind) \
  result name##_v3(device *d, unsigned *size, process *into) { return processes(#name "_v3", d, kind, size, into); } \
  result name##_v2(device *d, unsigned *size, process *into) { return processes(#name "_v2", d, kind, size, into); }
PROCESSES(nvmlDeviceGetComputeRunningProcesses, 'C')
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses, 'G')
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses, 'M')

result nvmlEventSetCreate(event_set **into) {
  result code = enter(__func__, NULL);
  if (!code) *into = calloc(1, sizeof **into);
  return code;
}
result nvmlEventSetFree(event_set *set) { free(set); return OK; }
result nvmlDeviceRegisterEvents(device *d, unsigned long long types, event_set *set) {
  (void)types;
  result code = enter(__func__, d);
  if (code) return code;
  pthread_mutex_lock(&lock);
  set->registered[d->gpu] = 1;
  set->next = 0;
  for (int i = 0; i < line_count; i++) set->next += at(i, "event") != NULL;
  pthread_mutex_unlock(&lock);
  return OK;
}
static int next_event(event_set *set, event *into) {
  int number = 0;
  for (int i = 0; i < line_count; i++) {
    const char *value = at(i, "event");
    int gpu;
    if (!value || number++ < set->next) continue;
    set->next++;
    if (sscanf(value, "%d %llu %llu", &gpu, &into->type, &into->data) == 3 && set->registered[gpu]) {
      into->device = &devices[gpu][0];
      into->gi = into->ci = NONE;
      return 1;
    }
  }
  return 0;
}
result nvmlEventSetWait_v2(event_set *set, event *into, unsigned milliseconds) {
  for (unsigned waited = 0;; waited += 2) {
    result code = enter("nvmlEventSetWait_v2", NULL);
    if (code) return code;
    pthread_mutex_lock(&lock);
    int found = next_event(set, into);
    pthread_mutex_unlock(&lock);
    if (found) return OK;
    if (waited >= milliseconds) return TIMEOUT;
    usleep(2000);
  }
}
