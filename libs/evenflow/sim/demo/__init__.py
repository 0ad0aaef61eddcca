"""The main job: four sites of a real accelerator fleet, real tasks, joined against isolated."""
