// Preloaded by programs that tests start while coverage is measured. Writes the coverage counts on SIGUSR2, because a killed program writes no
// counts. COVERAGE_PIDS names a folder with a file PID for each listening program, and a file PID.written for each program that has written.
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
