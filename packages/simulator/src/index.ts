export { Simulator, type SimulatorOptions } from './simulator.ts';
