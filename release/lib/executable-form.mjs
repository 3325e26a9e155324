// The form of a single executable: format, processor, the embedded program and the required libraries, read from the bytes of the file.
// Only Linux can be run here, so that the files for the other systems are checked in this way.
import { machOCommands, signatureComplaints } from './mach-signature.mjs';

/** Node.js starts the embedded program if the last character is 1. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:';

/** Libraries of glibc and of the C++ compiler. */
const LINUX_LIBRARIES =
  /^(?:ld-linux-(?:x86-64|aarch64)|libc|libm|libdl|libpthread|librt|libstdc\+\+|libgcc_s)\.so\.\d+$/;
const GLIBC_MAX_MINOR = 28;

const FORMS = {
  'linux-x64': { check: checkElf, machine: 62 },
  'linux-arm64': { check: checkElf, machine: 183 },
  'darwin-x64': { check: checkMachO, machine: 0x01000007 },
  'darwin-arm64': { check: checkMachO, machine: 0x0100000c },
  'win-x64': { check: checkPe, machine: 0x8664 },
};

/** Complaints about the executable of a target; an empty list if the form is right. */
export function formComplaints(target, bytes) {
  const { check, machine } = FORMS[target];
  const complaints = check(bytes, machine);
  if (!bytes.includes(`${FUSE}1`)) complaints.push('the embedded program is not activated');
  return complaints;
}

function checkElf(bytes, machine) {
  if (bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2) return ['no 64-bit ELF file'];
  const complaints = bytes.readUInt16LE(18) === machine ? [] : [`built for processor ${bytes.readUInt16LE(18)}`];
  const segments = elfSegments(bytes);
  const hasProgram = segments.some(
    ({ type, offset, size }) => type === PT_NOTE && bytes.subarray(offset, offset + size).includes('NODE_SEA_BLOB'),
  );
  if (!hasProgram) complaints.push('no note NODE_SEA_BLOB');
  const other = elfLibraries(bytes, segments).filter((name) => !LINUX_LIBRARIES.test(name));
  if (other.length > 0) complaints.push(`needs ${other.join(', ')}`);
  const minors = [...bytes.toString('latin1').matchAll(/\0GLIBC_2\.(\d+)(?=[.\0])/g)].map(([, minor]) => Number(minor));
  const newest = Math.max(0, ...minors);
  if (newest > GLIBC_MAX_MINOR) complaints.push(`needs glibc 2.${newest}`);
  return complaints;
}

const PT_LOAD = 1;
const PT_DYNAMIC = 2;
const PT_NOTE = 4;
const DT_NEEDED = 1;
const DT_STRTAB = 5;

function elfSegments(bytes) {
  const start = Number(bytes.readBigUInt64LE(32));
  const entrySize = bytes.readUInt16LE(54);
  return Array.from({ length: bytes.readUInt16LE(56) }, (_, index) => {
    const at = start + index * entrySize;
    const field = (offset) => Number(bytes.readBigUInt64LE(at + offset));
    return { type: bytes.readUInt32LE(at), offset: field(8), address: field(16), size: field(32) };
  });
}

/** The names of the shared libraries that the dynamic linker loads. */
function elfLibraries(bytes, segments) {
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  if (!dynamic) return [];
  const entries = Array.from({ length: dynamic.size / 16 }, (_, index) => {
    const at = dynamic.offset + index * 16;
    return { tag: Number(bytes.readBigUInt64LE(at)), value: Number(bytes.readBigUInt64LE(at + 8)) };
  });
  const address = entries.find(({ tag }) => tag === DT_STRTAB)?.value ?? 0;
  const home = segments.find(
    (one) => one.type === PT_LOAD && address >= one.address && address < one.address + one.size,
  );
  if (!home) return ['an unknown list of libraries'];
  const strings = home.offset + address - home.address;
  return entries
    .filter(({ tag }) => tag === DT_NEEDED)
    .map(({ value }) => bytes.toString('latin1', strings + value, bytes.indexOf(0, strings + value)));
}

const LC_SEGMENT_64 = 0x19;

function checkMachO(bytes, machine) {
  if (bytes.readUInt32LE(0) !== 0xfeedfacf) return ['no 64-bit Mach-O file'];
  const complaints = bytes.readUInt32LE(4) === machine ? [] : [`built for processor ${bytes.readUInt32LE(4)}`];
  const hasProgram = machOCommands(bytes).some(
    ({ command, at }) => command === LC_SEGMENT_64 && bytes.toString('latin1', at + 8, at + 17) === 'NODE_SEA\0',
  );
  if (!hasProgram) complaints.push('no segment NODE_SEA');
  return [...complaints, ...signatureComplaints(bytes)];
}

function checkPe(bytes, machine) {
  const header = bytes.readUInt32LE(0x3c);
  if (bytes.toString('latin1', 0, 2) !== 'MZ' || bytes.toString('latin1', header, header + 4) !== 'PE\0\0') {
    return ['no PE file'];
  }
  const complaints =
    bytes.readUInt16LE(header + 4) === machine ? [] : [`built for processor ${bytes.readUInt16LE(header + 4)}`];
  if (!resourcesOf(bytes, header).includes(Buffer.from('NODE_SEA_BLOB', 'utf16le'))) {
    complaints.push('no resource NODE_SEA_BLOB');
  }
  return complaints;
}

/** The section with the resources. The name of the section is free; its address is in the optional header. */
function resourcesOf(bytes, header) {
  const optional = header + 24;
  const address = bytes.readUInt32LE(optional + 128);
  const sections = optional + bytes.readUInt16LE(header + 20);
  for (let index = 0; index < bytes.readUInt16LE(header + 6); index += 1) {
    const at = sections + index * 40;
    const start = bytes.readUInt32LE(at + 12);
    const size = bytes.readUInt32LE(at + 16);
    const offset = bytes.readUInt32LE(at + 20);
    if (address >= start && address < start + size) return bytes.subarray(offset, offset + size);
  }
  return Buffer.alloc(0);
}
