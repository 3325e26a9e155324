// Loaded by the programs that tests start while coverage is taken: writes the counts on SIGUSR2, because a program that is
// killed writes none. COVERAGE_PIDS names the folder that tells which programs listen (PID) and which have written (PID.written).
const { rmSync, writeFileSync } = process.getBuiltinModule('node:fs');
const { takeCoverage } = process.getBuiltinModule('node:v8');

const dir = process.env.COVERAGE_PIDS;
if (dir && process.env.NODE_V8_COVERAGE) {
  const own = `${dir}/${process.pid}`;
  process.on('SIGUSR2', () => {
    takeCoverage();
    writeFileSync(`${own}.written`, '');
  });
  process.on('exit', () => rmSync(own, { force: true }));
  writeFileSync(own, '');
}
