// A `g++` that remembers: pypto compiles the same generated control-flow code again for every call of a kernel,
// and g++ is then most of the time of a case.
//
// It stands first on the PATH of a worker. The key of a compilation is its whole input: the real compiler, the
// arguments without the two paths, the source, and the headers beside the source. Lines that are only a comment
// (pypto writes running numbers into them) count as empty, so the line numbering stays. Keys are kept in full
// and compared in full, never by hash alone. Whatever is not one plain `-S` or `-c` of one file goes straight to
// the real compiler. A header that is nothing but macros counts the same in any order of its definitions (`InOrder`):
// pypto writes the conditions of paths in the order of their addresses, another one at each call.
//
// What it does not know it compiles with the standard headers ready-made (../headers/standard.h.gch), which yields
// the same assembler in a fifth of the time; gcc leaves a ready-made header aside that does not fit the arguments.
//
//   PYPTO_OP_CXX       absolute path of the real compiler
//   PYPTO_OP_CC_CACHE  folder of this session's memory; unset or missing: nothing is remembered
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

bool EndsWith(const std::string& text, const std::string& end) {
    return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool Read(const std::string& path, std::string& text) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return false;
    text.assign(std::istreambuf_iterator<char>(file), {});
    return true;
}

// A reader sees either the whole file or none.
bool WriteWhole(const std::string& path, const std::string& text) {
    const std::string draft = path + ".draft" + std::to_string(getpid());
    {
        std::ofstream file(draft, std::ios::binary);
        file << text;
        if (!file.flush()) return false;
    }
    return std::rename(draft.c_str(), path.c_str()) == 0;
}

// Whether a line of C++ is nothing but one comment: `// ...`, or `/* ... */` closed at its end.
bool IsComment(const std::string& line) {
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line.back() == '\\') return false;
    if (line.compare(first, 2, "//") == 0) return true;
    return line.compare(first, 2, "/*") == 0 && line.size() >= first + 4 &&
           line.find("*/", first + 2) == line.size() - 2;
}

// The text without what cannot change the result: comment lines of C++, and the `.file` line of assembler.
std::string Normalised(const std::string& text, bool assembler) {
    std::string result;
    for (size_t begin = 0; begin < text.size();) {
        size_t end = text.find('\n', begin);
        if (end == std::string::npos) end = text.size();
        const std::string line = text.substr(begin, end - begin);
        if (!(assembler ? line.compare(0, 7, "\t.file\t") == 0 : IsComment(line))) result += line;
        result += '\n';
        begin = end + 1;
    }
    return result;
}

// The header's text with its definitions in alphabetical order, or unchanged where the order may matter.
//
// The order does not matter if the header has a guard, and between the guard's lines nothing but pieces: definitions,
// then at most one `#if NAME ... #else ... #endif`; no name is defined in two pieces, and the NAME that a piece asks
// for is defined nowhere in the header, or in this piece and as a number.
std::string InOrder(const std::string& text) {
    std::vector<std::string> pieces(1);
    std::map<std::string, size_t> defined;  // name -> index of the piece
    std::vector<std::pair<std::string, size_t>> asked;
    std::set<std::string> numbers;
    std::istringstream lines(text);
    int depth = 0;  // 1: inside the guard, 2: inside the `#if` of a piece
    bool closed = false;
    for (std::string line; std::getline(lines, line);) {
        const size_t comment = line.find("/*");
        std::istringstream parts(line.substr(0, comment));
        std::string directive, name, more;
        parts >> directive >> name;
        const bool plain = !EndsWith(line, "\\") && line.find("//") == std::string::npos &&
                           (comment == std::string::npos || line.find("*/", comment + 2) == line.size() - 2);
        if (!plain || (closed && !directive.empty())) return text;
        if (directive.empty()) continue;
        if (directive == "#ifndef" && depth == 0) {
            depth = 1;
        } else if (directive == "#define" && depth > 0) {
            const size_t piece = pieces.size() - 1;
            if (defined.emplace(name.substr(0, name.find('(')), piece).first->second != piece) return text;
            if (parts >> more && more.find_first_not_of("0123456789") == std::string::npos && !(parts >> more)) numbers.insert(name);
        } else if (directive == "#if" && depth == 1 && !(parts >> more)) {
            asked.emplace_back(name, pieces.size() - 1);
            depth = 2;
        } else if (directive == "#endif" && depth > 0) {
            closed = --depth == 0;
        } else if (directive != "#else" || depth != 2) {
            return text;
        }
        pieces.back() += line + '\n';
        if (directive == "#endif" || (directive == "#define" && pieces.size() == 1)) pieces.emplace_back();
    }
    for (const auto& [name, piece] : asked) {
        const auto found = defined.find(name);
        if (found != defined.end() && (found->second != piece || numbers.count(name) == 0)) return text;
    }
    if (!closed || pieces.size() < 3) return text;
    // The first piece is the beginning of the guard, the last but one holds its end; the last is empty.
    std::sort(pieces.begin() + 1, pieces.end() - 2);
    std::string result;
    for (const auto& piece : pieces) result += piece;
    return result;
}

void Append(std::string& key, const std::string& part) { key += std::to_string(part.size()) + ':' + part; }

struct Compilation {
    std::string input, output;
    std::vector<std::string> rest;  // every other argument, in order
    bool assembler = false;
};

// Whether the command is one plain compilation of one file.
bool Understand(int argc, char** argv, Compilation& job) {
    bool compiles = false;
    for (int i = 1; i < argc; ++i) {
        const std::string arg = argv[i];
        if (arg == "-o") {
            if (++i >= argc || !job.output.empty()) return false;
            job.output = argv[i];
        } else if (arg[0] != '-' && (EndsWith(arg, ".cpp") || EndsWith(arg, ".s"))) {
            if (!job.input.empty()) return false;
            job.input = arg;
        } else if (arg[0] != '-') {
            return false;
        } else {
            compiles = compiles || arg == "-S" || arg == "-c";
            job.rest.push_back(arg);
        }
    }
    job.assembler = EndsWith(job.input, ".s");
    return compiles && !job.input.empty() && !job.output.empty();
}

bool AppendHeaders(const std::string& folder, std::string& key) {
    DIR* dir = opendir(folder.c_str());
    if (dir == nullptr) return false;
    std::vector<std::string> names;
    while (const dirent* entry = readdir(dir)) {
        if (EndsWith(entry->d_name, ".h")) names.push_back(entry->d_name);
    }
    closedir(dir);
    std::sort(names.begin(), names.end());
    for (const auto& name : names) {
        std::string text;
        if (!Read(folder + '/' + name, text)) return false;
        Append(key, name);
        Append(key, InOrder(Normalised(text, false)));
    }
    return true;
}

bool MakeKey(const char* compiler, const Compilation& job, std::string& key) {
    struct stat status;
    if (stat(compiler, &status) != 0) return false;
    Append(key, compiler);
    Append(key, std::to_string(status.st_size) + ' ' + std::to_string(status.st_mtime));
    for (const auto& arg : job.rest) Append(key, arg);
    std::string text;
    if (!Read(job.input, text)) return false;
    Append(key, Normalised(text, job.assembler));
    const size_t slash = job.input.rfind('/');
    return job.assembler || AppendHeaders(slash == std::string::npos ? "." : job.input.substr(0, slash), key);
}

std::string NameOf(const std::string& key) {
    uint64_t hash = 14695981039346656037ULL;  // FNV-1a; only a file name, the key itself is compared
    for (const unsigned char byte : key) hash = (hash ^ byte) * 1099511628211ULL;
    char name[17];
    std::snprintf(name, sizeof(name), "%016llx", static_cast<unsigned long long>(hash));
    return name;
}

// The ready-made headers beside this program; empty when there are none.
std::string StandardHeaders() {
    char self[4096];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self));
    if (length <= 0 || length == static_cast<ssize_t>(sizeof(self))) return "";
    std::string path(self, static_cast<size_t>(length));
    path = path.substr(0, path.rfind('/')) + "/../headers/standard.h";
    return access((path + ".gch").c_str(), R_OK) == 0 ? path : "";
}

int RunCompiler(const char* compiler, char** argv, bool assembler) {
    std::vector<char*> arguments(1, argv[0]);
    std::string headers = assembler ? "" : StandardHeaders();
    std::string include = "-include";
    if (!headers.empty()) {
        arguments.push_back(include.data());
        arguments.push_back(headers.data());
    }
    for (char** arg = argv + 1; *arg != nullptr; ++arg) arguments.push_back(*arg);
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
        execv(compiler, arguments.data());
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
    const char* compiler = std::getenv("PYPTO_OP_CXX");
    if (compiler == nullptr) {
        std::fprintf(stderr, "pypto-op: PYPTO_OP_CXX is not set\n");
        return 127;
    }
    argv[0] = const_cast<char*>(compiler);  // g++ looks for its own parts beside the name it was called by
    const char* cache = std::getenv("PYPTO_OP_CC_CACHE");
    Compilation job;
    std::string key;
    if (cache == nullptr || !Understand(argc, argv, job) || !MakeKey(compiler, job, key)) {
        execv(compiler, argv);
        std::perror(compiler);
        return 127;
    }
    const std::string entry = std::string(cache) + '/' + NameOf(key);
    std::string known, result;
    if (Read(entry + ".key", known) && known == key && Read(entry + ".out", result)) {
        if (WriteWhole(job.output, result)) return 0;
    }
    const int code = RunCompiler(compiler, argv, job.assembler);
    if (code == 0 && Read(job.output, result) && WriteWhole(entry + ".out", result)) {
        WriteWhole(entry + ".key", key);
    }
    return code;
}
