#!/usr/bin/env python3
"""The plan's stages for DeepSpeed's pipeline, which by itself divides layers evenly, by parameters
or by type.  PlannedPipeline stands in PipelineModule's place:

    model = PlannedPipeline(layers, block="DecoderLayer", loss_fn=loss_fn)

block is part of the name of the transformer layers' class.  What stands before the first of them
is the first stage's, what stands behind the last of them the last one's.
"""

from deepspeed.pipe import PipelineModule

STAGES = []  # transformer layers of each stage


class PlannedPipeline(PipelineModule):

    def __init__(self, layers, *, block, num_stages=None, **kwargs):
        self.planned_block = block
        super().__init__(layers, num_stages=num_stages or len(STAGES), **kwargs)

    def _partition_layers(self, method=None):
        blocks = self._find_layer_type(self.planned_block)
        stages = self._topo.get_dim("pipe")
        if len(blocks) != sum(STAGES) or stages != len(STAGES):
            raise ValueError(f"the plan has {sum(STAGES)} layers in {len(STAGES)} stages, "
                             f"the model {len(blocks)} in {stages}")
        first = [sum(STAGES[:stage]) for stage in range(1, stages)]
        self.parts = [0] + [blocks[i] for i in first] + [len(self._layer_specs)]
        stage = self._topo.get_coord(self.global_rank).pipe
        self._set_bounds(start=self.parts[stage], stop=self.parts[stage + 1])
