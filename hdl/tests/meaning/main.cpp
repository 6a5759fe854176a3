// Drives the Verilated cases with the vectors of the Rust model and compares every output.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "Vall.h"

static long differences = 0, compared = 0;

static std::string next(std::ifstream& vectors) {
    std::string word;
    vectors >> word;
    return word;
}

template <class T> static void set(T& port, const std::string& hex) { port = std::strtoull(hex.c_str(), nullptr, 16); }

template <size_t N> static void set(VlWide<N>& port, const std::string& hex) {
    for (size_t word = 0; word < N; ++word) {
        const size_t end = hex.size() < 8 * word ? 0 : hex.size() - 8 * word;
        const size_t begin = end < 8 ? 0 : end - 8;
        port[word] = end == 0 ? 0 : std::strtoul(hex.substr(begin, end - begin).c_str(), nullptr, 16);
    }
}

static std::string trimmed(const std::string& hex) {
    const size_t first = hex.find_first_not_of('0');
    return first == std::string::npos ? "0" : hex.substr(first);
}

template <class T> static std::string get(const T& port) {
    char text[17];
    std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(port));
    return text;
}

template <size_t N> static std::string get(const VlWide<N>& port) {
    std::string text;
    for (size_t word = N; word-- > 0;) {
        char part[9];
        std::snprintf(part, sizeof part, "%08x", port[word]);
        text += part;
    }
    return trimmed(text);
}

template <class T> static void same(const char* name, long row, const T& port, const std::string& rust) {
    if (row < @UNDER_RESET@) return;
    ++compared;
    const std::string verilog = get(port);
    if (verilog != rust && ++differences <= 30) {
        std::printf("%s, vector %ld: Rust %s, Verilog %s\n", name, row, rust.c_str(), verilog.c_str());
    }
}

int main() {
    const std::unique_ptr<Vall> top{new Vall};
    std::ifstream vectors{"vectors.txt"};
    for (long row = 0; vectors >> std::ws && !vectors.eof(); ++row) {
@INPUTS@
        top->eval();
@OUTPUTS@
    }
    top->final();
    std::printf("%ld of %ld values differ\n", differences, compared);
    return compared == 0 || differences != 0;
}
