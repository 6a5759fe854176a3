"""Lists and runs tests of rdma-core's own suite, and tells of each in lines of JSON on standard output.

runner.py list SUITE FOLDER MODULE ...   unpacks the suite into FOLDER and names the tests of the modules, or of all
runner.py run FOLDER SEED DEVICE         runs the tests that standard input names, one a line, on a device
"""

import gzip
import importlib.util
import json
import os
import random
import shutil
import sys
import traceback
import unittest

# Of one vendor's cards, or of graphics processors.
OTHERS = ('test_mlx5', 'test_efa', 'test_cuda')

# What tests print goes with the errors.
report = os.fdopen(os.dup(1), 'w', buffering=1)
os.dup2(2, 1)


def tell(event, **fields):
    report.write(json.dumps({'event': event, **fields}) + '\n')


def unpack(suite, folder):
    """Copies the suite, parts of which are compressed; returns the names of its test modules."""
    modules = []
    for name in sorted(os.listdir(suite)):
        plain = name.removesuffix('.gz')
        if not plain.endswith('.py') or plain.startswith(OTHERS):
            continue
        opened = gzip.open if name != plain else open
        with opened(os.path.join(suite, name), 'rb') as source, \
                open(os.path.join(folder, plain), 'wb') as copy:
            shutil.copyfileobj(source, copy)
        if plain.startswith('test_'):
            modules.append(plain.removesuffix('.py'))
    return modules


def load(folder, device='none'):
    """Imports the suite as the package `tests`, which is what its modules call it."""
    sys.path.insert(0, folder)
    sys.argv = ['run_tests.py', '--dev', device]
    from args_parser import parser
    parser.parse_args()
    spec = importlib.util.spec_from_file_location(
        'tests', os.path.join(folder, '__init__.py'), submodule_search_locations=[folder])
    tests = importlib.util.module_from_spec(spec)
    sys.modules['tests'] = tests
    spec.loader.exec_module(tests)


def names(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from names(test)
        else:
            yield test.id()


class Report(unittest.TestResult):
    def __init__(self, seed):
        super().__init__()
        self.seed = seed

    def startTest(self, test):
        super().startTest(test)
        tell('start', test=test.id())
        random.seed(f'{self.seed} {test.id()}')

    def stopTest(self, test):
        super().stopTest(test)
        tell('end', test=test.id())

    def addSuccess(self, test):
        tell('passed', test=test.id())

    def addSkip(self, test, reason):
        tell('skipped', test=test.id(), text=reason)

    def addError(self, test, err):
        tell('failed', test=test.id(), text=''.join(traceback.format_exception(*err)))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.addError(test, err)

    def addExpectedFailure(self, test, err):
        self.addSuccess(test)

    def addUnexpectedSuccess(self, test):
        tell('failed', test=test.id(), text='it was expected to fail')


def main():
    command, *words = sys.argv[1:]
    loader = unittest.defaultTestLoader
    if command == 'list':
        suite, folder, *wanted = words
        modules = unpack(suite, folder)
        unknown = [name for name in wanted if name not in modules]
        if unknown:
            tell('unknown', modules=unknown, known=modules)
            return
        load(folder)
        for module in wanted or modules:
            for name in names(loader.loadTestsFromName(f'tests.{module}')):
                tell('test', test=name)
    else:
        folder, seed, device = words
        wanted = sys.stdin.read().split()
        load(folder, device)
        for name in wanted:
            loader.loadTestsFromName(name).run(Report(seed))
    tell('done')


main()
