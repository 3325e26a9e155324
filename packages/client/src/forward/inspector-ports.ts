/** Ports of 127.0.0.1 that inspectors try in this order. Every client takes the first that is free. */
export const INSPECTOR_PORTS: readonly number[] = Array.from({ length: 100 }, (_, index) => 4300 + index);
