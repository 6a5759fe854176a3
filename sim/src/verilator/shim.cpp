// One verilated model behind a table of C functions; the Rust side is `model.rs`.
// ports.h, written per model, lists the ports and the clock.
#include <algorithm>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "Vmodel.h"
#include "ports.h"
#include "verilated.h"
#if VM_TRACE_FST
#include "verilated_fst_c.h"
#endif
#if VM_COVERAGE
#include "verilated_cov.h"
#endif

namespace {

// Why the last call on this thread failed.
thread_local std::string last_error;

// Leaves a running eval() once last_error is set.
struct Stopped {};

[[noreturn]] void stop(const char* what, const char* file, int line, const char* hier) {
    last_error = std::string{what} + " at " + file + ":" + std::to_string(line);
    if (hier && *hier) last_error += std::string{" in "} + hier;
    throw Stopped{};
}

#if VM_COVERAGE
// A counter of an instance.
struct Point {
    uint32_t* count;
    bool toggle;
};

// Those of the instance that this thread makes, and whether they are the sum of all instances.
thread_local std::vector<Point>* making;
thread_local bool making_sum;
#endif

// Members are destroyed last to first: the trace refers to the model, the model to the context.
struct Instance {
    VerilatedContext context;
#if VM_COVERAGE
    // In the order of the model, the same for all instances.
    std::vector<Point> points;
#endif
    std::unique_ptr<Vmodel> model;
#if VM_TRACE_FST
    std::unique_ptr<VerilatedFstC> trace;
#endif

    explicit Instance(int seed, [[maybe_unused]] bool sum = false) {
        // 0: all registers without an initial value start at 0; 2: at random values.
        context.randReset(seed ? 2 : 0);
        // By default a context starts a thread per further processor, which runs no model of one thread; that of
        // `Sum`, which is never destroyed, outlived the library.
        context.threads(1);
#if VM_TRACE_FST
        context.traceEverOn(true);
#endif
#if VM_COVERAGE
        making = &points;
        making_sum = sum;
#endif
        // The seed of one instance makes threads draw anew in the middle of another.
        static std::mutex drawing;
        const std::lock_guard<std::mutex> lock{drawing};
        context.randSeed(seed);
        model = std::make_unique<Vmodel>(&context);
    }

    void advance(uint64_t ps) {
#if VM_TRACE_FST
        if (trace) trace->dump(context.time());
#endif
        context.timeInc(ps);
    }

    // First half of a cycle: clock low, combinational outputs follow the inputs.
    void settle() {
        FERROCE_SET_CLOCK(*model, 0);
        model->eval();
        advance(FERROCE_HALF_PERIOD_PS);
    }

    // Second half of a cycle: the rising edge.
    void rise() {
        FERROCE_SET_CLOCK(*model, 1);
        model->eval();
        advance(FERROCE_HALF_PERIOD_PS);
    }
};

#if VM_COVERAGE
// What instances that are gone have covered: an instance that never runs, with their counters summed in its own.
struct Sum {
    std::mutex mutex;
    Instance instance{0, true};

    static Sum& get() {
        static Sum* sum = new Sum;
        return *sum;
    }

    void add(const Instance& gone) {
        const std::lock_guard<std::mutex> lock{mutex};
        for (size_t i = 0; i < gone.points.size(); ++i) {
            const auto [count, toggle] = gone.points[i];
            uint32_t& sum = *instance.points[i].count;
            // A bit that changed once has not gone both ways.
            if (toggle && *count < 2) continue;
            sum += std::min(*count, std::numeric_limits<uint32_t>::max() - sum);
        }
    }

    void write(const char* path) {
        const std::lock_guard<std::mutex> lock{mutex};
        instance.context.coveragep()->write(path);
    }
};
#endif

// Runs f; no C++ exception may reach Rust.
template <class F>
int guarded(F f) noexcept {
    try {
        f();
        return 0;
    } catch (const Stopped&) {
        return 1;
    } catch (const std::exception& error) {
        last_error = error.what();
        return 1;
    }
}

int create(int seed, Instance** out, void** ports) {
    return guarded([=] {
        auto instance = std::make_unique<Instance>(seed);
        [[maybe_unused]] Vmodel& model = *instance->model;
        const std::initializer_list<void*> addresses{FERROCE_PORTS(model)};
        std::copy(addresses.begin(), addresses.end(), ports);
        *out = instance.release();
    });
}

void destroy(Instance* instance) {
    guarded([=] {
        instance->model->final();
#if VM_COVERAGE
        Sum::get().add(*instance);
#endif
    });
    // the scopes of a model leave the context of the thread, which is that of the instance used last, and may be gone
    Verilated::threadContextp(&instance->context);
    delete instance;
}

int eval(Instance* instance) {
    return guarded([=] { instance->model->eval(); });
}

int settle(Instance* instance) {
    return guarded([=] { instance->settle(); });
}

int rise(Instance* instance) {
    return guarded([=] { instance->rise(); });
}

int tick(Instance* instance, uint64_t cycles) {
    return guarded([=] {
        for (uint64_t i = 0; i < cycles; ++i) {
            instance->settle();
            instance->rise();
        }
    });
}

int advance(Instance* instance, uint64_t ps) {
    return guarded([=] { instance->advance(ps); });
}

// Starts a trace at `path`, or ends the current one when `path` is null.
int trace(Instance* instance, const char* path) {
#if VM_TRACE_FST
    return guarded([=] {
        instance->trace.reset();
        if (!path) return;
        auto trace = std::make_unique<VerilatedFstC>();
        instance->model->trace(trace.get(), 99);
        trace->open(path);
        if (!trace->isOpen()) {
            last_error = "cannot open the file";
            throw Stopped{};
        }
        instance->trace = std::move(trace);
    });
#else
    last_error = "built without tracing";
    return 1;
#endif
}

int write_coverage(const char* path) {
#if VM_COVERAGE
    return guarded([=] { Sum::get().write(path); });
#else
    last_error = "built without coverage";
    return 1;
#endif
}

const char* error() { return last_error.c_str(); }

struct Table {
    uint64_t size;
    int (*create)(int, Instance**, void**);
    void (*destroy)(Instance*);
    int (*eval)(Instance*);
    int (*settle)(Instance*);
    int (*rise)(Instance*);
    int (*tick)(Instance*, uint64_t);
    int (*advance)(Instance*, uint64_t);
    int (*trace)(Instance*, const char*);
    int (*write_coverage)(const char*);
    const char* (*error)();
};

}  // namespace

#if VM_COVERAGE
bool ferroce_point(uint32_t* count, const char* page) {
    making->push_back({count, std::string{page}.rfind("v_toggle", 0) == 0});
    return making_sum;
}
#endif

// The run-time library is compiled without its own versions of these, which end the process.
void vl_finish(const char* file, int line, const char* hier) { stop("$finish", file, line, hier); }

void vl_stop(const char* file, int line, const char* hier) { stop("$stop", file, line, hier); }

void vl_fatal(const char* file, int line, const char* hier, const char* message) {
    stop(message, file, line, hier);
}

extern "C" __attribute__((visibility("default"))) const Table ferroce_model{
    sizeof(Table), create, destroy, eval,  settle,         rise,
    tick,          advance, trace,  write_coverage, error,
};
