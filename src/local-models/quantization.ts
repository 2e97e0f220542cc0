/** The names of the ways in which a model's numbers are stored, as file names spell them. */

/** By the number in the file: `llama_ftype` of llama.cpp. */
const names: ReadonlyMap<number, string> = new Map([
  [0, 'F32'],
  [1, 'F16'],
  [2, 'Q4_0'],
  [3, 'Q4_1'],
  [7, 'Q8_0'],
  [8, 'Q5_0'],
  [9, 'Q5_1'],
  [10, 'Q2_K'],
  [11, 'Q3_K_S'],
  [12, 'Q3_K_M'],
  [13, 'Q3_K_L'],
  [14, 'Q4_K_S'],
  [15, 'Q4_K_M'],
  [16, 'Q5_K_S'],
  [17, 'Q5_K_M'],
  [18, 'Q6_K'],
  [19, 'IQ2_XXS'],
  [20, 'IQ2_XS'],
  [21, 'Q2_K_S'],
  [22, 'IQ3_XS'],
  [23, 'IQ3_XXS'],
  [24, 'IQ1_S'],
  [25, 'IQ4_NL'],
  [26, 'IQ3_S'],
  [27, 'IQ3_M'],
  [28, 'IQ2_S'],
  [29, 'IQ2_M'],
  [30, 'IQ4_XS'],
  [31, 'IQ1_M'],
  [32, 'BF16'],
  [36, 'TQ1_0'],
  [37, 'TQ2_0'],
  [38, 'MXFP4'],
  [39, 'NVFP4'],
]);

/** Undefined for numbers that are not known here. */
export function quantizationName(fileType: number): string | undefined {
  return names.get(fileType);
}

const inFileName =
  /(?:^|[-._/])((?:UD-)?(?:I?Q\d+_[A-Z0-9]+(?:_[A-Z0-9]+)*|BF16|F16|F32|MXFP4|TQ[12]_0))(?:[-.]|$)/i;

/** The quantisation in a file's name, in capitals; undefined when there is none. */
export function quantizationOf(fileName: string): string | undefined {
  return inFileName.exec(fileName.replace(/\.gguf$/i, ''))?.[1]?.toUpperCase();
}
